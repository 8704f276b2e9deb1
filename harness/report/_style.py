"""The style of the page, and its optional script; both are embedded in the page."""

from __future__ import annotations

import base64
import hashlib

LIGHT = {
    "paper": "#ffffff",
    "field": "#f4f5f7",
    "edge": "#cfd4dc",
    "ink": "#1a1d21",
    "soft": "#545c68",
    "link": "#0b57a8",
    "good": "#176b34",
    "bad": "#b3261e",
    "warn": "#7a4d00",
    "s0": "#2f6fb7",
    "s1": "#7b4fb3",
    "s2": "#0f7f86",
    "s3": "#a05a00",
    "s4": "#a83279",
    "s5": "#4d7a1e",
    "s6": "#5a6270",
    "s7": "#8a6d3b",
}
DARK = {
    "paper": "#14171b",
    "field": "#1e2329",
    "edge": "#3a424d",
    "ink": "#e8eaed",
    "soft": "#a7b0bc",
    "link": "#8ab8f5",
    "good": "#6fcf8b",
    "bad": "#ff8a80",
    "warn": "#f0b95a",
    "s0": "#5b9be6",
    "s1": "#b08ae6",
    "s2": "#3fb9c1",
    "s3": "#e09a45",
    "s4": "#e57ab8",
    "s5": "#93c45a",
    "s6": "#98a2b1",
    "s7": "#cdb07a",
}
SERIES = "".join(f".s{number}{{fill:var(--s{number});stroke:var(--s{number})}}" for number in range(8))

RULES = (
    """
*{box-sizing:border-box}
html{scroll-padding-top:1rem;-webkit-text-size-adjust:100%}
body{margin:0 auto;padding:1rem clamp(.75rem,3vw,2rem) 4rem;max-width:66rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6rem;margin:.5rem 0 0;line-height:1.25}
h2{font-size:1.25rem;margin:2.5rem 0 .75rem;padding-top:.75rem;border-top:1px solid var(--edge)}
h3{font-size:1rem;margin:1.25rem 0 .4rem}
p{margin:.4rem 0}
a{color:var(--link)}
a:focus-visible,summary:focus-visible,input:focus-visible,button:focus-visible,.wide:focus-visible,pre:focus-visible
{outline:3px solid var(--link);outline-offset:2px;border-radius:3px}
code,pre,.id{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.86em}
pre{background:var(--field);border:1px solid var(--edge);border-radius:6px;padding:.6rem .75rem;margin:.4rem 0;overflow:auto;
max-height:24rem;white-space:pre-wrap}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1rem;padding:0;margin:1rem 0;list-style:none}
nav a{display:inline-block;padding:.2rem 0}
.note,.soft{color:var(--soft)}
.note{font-size:.9rem}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.6rem;margin:1rem 0;padding:0}
.tiles div{background:var(--field);border:1px solid var(--edge);border-radius:8px;padding:.6rem .8rem}
.tiles dt{color:var(--soft);font-size:.85rem}
.tiles dd{margin:0;font-size:1.2rem;font-weight:650;line-height:1.3}
.tiles small{display:block;font-size:.8rem;font-weight:400;color:var(--soft)}
.alert{border:1px solid var(--edge);border-left:5px solid var(--warn);border-radius:6px;padding:.6rem .9rem;margin:1rem 0;
background:var(--field)}
.alert.bad{border-left-color:var(--bad)}
.alert h2,.alert h3{margin:0 0 .3rem;padding:0;border:0;font-size:1.05rem}
.alert ul{margin:.3rem 0;padding-left:1.2rem}
.badge{display:inline-block;border:1px solid currentColor;border-radius:99px;padding:0 .55em;font-size:.8rem;line-height:1.5;
white-space:nowrap;color:var(--soft)}
.badge.good{color:var(--good)}.badge.bad{color:var(--bad)}.badge.warn{color:var(--warn)}
details{border:1px solid var(--edge);border-radius:6px;margin:.35rem 0;background:var(--paper)}
summary{cursor:pointer;padding:.45rem .7rem;border-radius:6px}
summary:hover{background:var(--field)}
details[open]>summary{border-bottom:1px solid var(--edge);border-radius:6px 6px 0 0;background:var(--field)}
details>:not(summary){margin-left:.8rem;margin-right:.8rem}
details>:last-child:not(summary){margin-bottom:.7rem}
figure details,.plain{border:0;margin-top:.2rem;margin-bottom:.2rem}
figure details>summary,.plain>summary{padding:.2rem 0;color:var(--soft);font-size:.9rem;width:max-content;
border:0!important;background:none!important}
figure details>:not(summary),.plain>:not(summary){margin-left:0;margin-right:0}
.line{display:inline-flex;flex-wrap:wrap;gap:.1rem .6rem;align-items:baseline;width:calc(100% - 1.4rem);vertical-align:top}
.line .grow{flex:1 1 12rem;min-width:0}
.num{font-variant-numeric:tabular-nums}
dl.facts{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.1rem .9rem;margin-top:.5rem;margin-bottom:.5rem}
dl.facts dt{color:var(--soft)}dl.facts dd{margin:0}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.92rem;overflow-wrap:normal}
th,td{text-align:left;padding:.35rem .7rem .35rem 0;border-bottom:1px solid var(--edge);vertical-align:top;font-weight:400}
thead th{color:var(--soft);font-size:.85rem;white-space:nowrap}
figure{margin:1rem 0 1.5rem}figcaption{font-weight:650;margin-bottom:.25rem}
svg.plot{display:block;overflow:visible}
svg text{fill:var(--soft);font-size:12px;font-family:inherit}
svg .grid{stroke:var(--edge);stroke-width:1}
svg .stroke{fill:none;stroke-width:2.5}
svg a:hover rect{opacity:.7}
"""
    + SERIES
    + """
rect[class^=s]{stroke:none}
svg .bad{fill:var(--bad);stroke:none}svg .good{fill:var(--good)}svg .warn{fill:var(--warn)}svg .dash{fill:var(--paper)}
.legend{display:flex;flex-wrap:wrap;gap:.1rem 1rem;padding:0;margin:.2rem 0 .5rem;list-style:none;font-size:.88rem;
color:var(--soft)}
.key{width:.8em;height:.8em;vertical-align:-.05em}
.tries{display:inline-flex;flex-wrap:wrap;gap:.3rem;list-style:none;padding:0;margin:0;vertical-align:middle}
.tries a{display:block;padding:.2rem;margin:-.2rem}.try{display:block;width:1.05rem;height:1.05rem;border-radius:3px}
.tools{display:flex;flex-wrap:wrap;gap:.5rem;align-items:end;margin:.6rem 0}
.tools[hidden]{display:none}
.tools label{flex:1 1 14rem}
input,button{font:inherit;color:inherit;background:var(--field);border:1px solid var(--soft);border-radius:6px;
padding:.35rem .6rem}
input{display:block;width:100%}
button{cursor:pointer}
@media(max-width:34rem){dl.facts{grid-template-columns:1fr}dl.facts dt{margin-top:.3rem}h1{font-size:1.35rem}}
@media print{nav,.tools{display:none}}
"""
)

SCRIPT = """
(function(){
var runs=Array.prototype.slice.call(document.querySelectorAll("#runs details.run"));
function reveal(){var at=document.getElementById(decodeURIComponent(location.hash.slice(1)));
if(!at)return;if(at.tagName==="DETAILS"){at.hidden=false;at.open=true;at.firstElementChild.focus({preventScroll:true})}
at.scrollIntoView()}
addEventListener("hashchange",reveal);
document.addEventListener("click",function(event){var link=event.target.closest&&event.target.closest("a[href^='#']");
if(link&&link.getAttribute("href")===location.hash)reveal()});
var tools=document.querySelector(".tools");
if(tools){tools.hidden=false;var field=tools.querySelector("input"),count=document.querySelector("#runs output");
field.addEventListener("input",function(){var words=field.value.toLowerCase().split(/\\s+/),left=0;
runs.forEach(function(run){var text=run.textContent.toLowerCase();
var fits=words.every(function(word){return text.indexOf(word)>=0});run.hidden=!fits;left+=fits});
count.textContent=left+" of "+runs.length+" runs"});
tools.querySelector("button").addEventListener("click",function(){
var open=runs.some(function(run){return !run.hidden&&!run.open});
runs.forEach(function(run){if(!run.hidden)run.open=open})})}
if(location.hash)reveal();
})();
"""


def sheet() -> str:
    """The style sheet: light, or dark if the reader's system is dark."""

    def values(colours: dict[str, str]) -> str:
        return "".join(f"--{name}:{value};" for name, value in colours.items())

    dark = f"@media(prefers-color-scheme:dark){{:root{{{values(DARK)}}}}}"
    return f":root{{color-scheme:light dark;{values(LIGHT)}}}{dark}{RULES}"


def policy() -> str:
    """The Content-Security-Policy of the page: allows only its embedded style and script, by digest."""
    own = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (sheet(), SCRIPT)]
    return f"default-src 'none'; style-src 'sha256-{own[0]}'; script-src 'sha256-{own[1]}'; base-uri 'none'; form-action 'none'"
