// The page is complete without this script: it filters the list of runs, and opens what a link leads to.
(function () {
  var runs = Array.prototype.slice.call(document.querySelectorAll("#runs details.run"));

  function reveal() {
    var at = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!at) return;
    if (at.tagName === "DETAILS") {
      at.hidden = false;
      at.open = true;
      at.firstElementChild.focus({ preventScroll: true });
    }
    at.scrollIntoView();
  }

  addEventListener("hashchange", reveal);
  document.addEventListener("click", function (event) {
    var link = event.target.closest && event.target.closest("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) reveal();
  });

  var tools = document.querySelector(".tools");
  if (tools) {
    tools.hidden = false;
    var field = tools.querySelector("input"), count = document.querySelector("#runs output");
    field.addEventListener("input", function () {
      var words = field.value.toLowerCase().split(/\s+/), left = 0;
      runs.forEach(function (run) {
        var text = run.textContent.toLowerCase();
        var fits = words.every(function (word) { return text.indexOf(word) >= 0; });
        run.hidden = !fits;
        left += fits;
      });
      count.textContent = left + " of " + runs.length + " runs";
    });
    tools.querySelector("button").addEventListener("click", function () {
      var open = runs.some(function (run) { return !run.hidden && !run.open; });
      runs.forEach(function (run) { if (!run.hidden) run.open = open; });
    });
  }
  if (location.hash) reveal();
})();
