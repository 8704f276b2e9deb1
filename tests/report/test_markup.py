"""Markup: every text is escaped, and elements are well-formed."""

from __future__ import annotations

from harness.report._markup import Html, element, folded, joined, table, text


def test_a_text_cannot_become_markup() -> None:
    """Neither inside an element nor in an attribute; what steers or turns text is shown."""
    assert text("<b>&\"'") == "&lt;b&gt;&amp;&quot;&#x27;"
    assert text("a\x1b[2J\u202e\ud800") == r"a\x1b[2J\u202e\ud800"
    assert element("a", "<i>", href='"><script>') == '<a href="&quot;&gt;&lt;script&gt;">&lt;i&gt;</a>'


def test_markup_of_ours_is_not_escaped_twice() -> None:
    """An element inside another one stays; a plain text beside it does not."""
    inner = element("b", "1 < 2")
    assert element("p", inner, " & ") == "<p><b>1 &lt; 2</b> &amp; </p>"
    assert joined([inner, "<"], ", ") == "<b>1 &lt; 2</b>, &lt;"
    assert isinstance(joined([]), Html)


def test_attributes_have_their_names_and_may_be_left_out() -> None:
    """`class_`, `aria_label`; None and False omit it, True has no value."""
    assert (
        element("p", class_="a", aria_label="b", hidden=True, id=None, open=False)
        == '<p class="a" aria-label="b" hidden></p>'
    )
    assert element("rect", width="1") == '<rect width="1"/>'
    assert element("rect", element("title", "a")) == "<rect><title>a</title></rect>"


def test_a_table_says_what_its_cells_are() -> None:
    """A caption, a heading for each column, and one for each row."""
    found = table(("a", "b"), [("1", "2")], "numbers")
    assert '<caption class="unseen">numbers</caption>' in found
    assert '<th scope="col">a</th><th scope="col">b</th>' in found
    assert '<th scope="row">1</th><td>2</td>' in found


def test_what_is_folded_opens_by_its_title() -> None:
    """A summary first."""
    assert folded("more", "text", id="x") == '<details id="x"><summary>more</summary>text</details>'
