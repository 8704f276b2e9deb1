"""A written contract reads back as the same contract, and an invalid one is reported with its line."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.base import schema
from harness.base.errors import BrokenFile, UsageFault
from harness.mission import contract
from harness.mission.contract import Check, Claim, Contract, Service
from harness.state import names
from harness.state.layout import Layout
from tests.helpers import mission, nasty, put

COMMANDS = (
    "true",
    "",
    "\n",
    "a\n",
    "\n\n  a\n\n\tb  \n\n\n",
    "    indented\n  less",
    "echo '`date`' \"$(x)\" \\\n  | grep x",
    "cat <<'END'\n```sh check\nfalse\n```\n### X: y\nEND\n",
    "````\n~~~~\n`````",
    "echo ✓ 漢字 🙂 \u2028 \u0085 \x0c \u00a0",
    "# only a comment",
    "<!-- -->",
    "---\na: 1\n---",
    "manual",
)
READY = (
    "true",
    'curl -s "http://127.0.0.1:$PORT/a b"',
    "echo `x` 'y' \\ \"z\"",
    "a\\",
    " spaces ",
    "~~~ ```",
    "é 漢 #",
    "=",
)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A mission with an empty folder."""
    return mission(tmp_path)


def claims(command: str) -> list[Claim]:
    """A claim of each kind, with the command in it."""
    checks = [Check(run=command), Check(run=command, seconds=900), Check(run=command, guard=True, seconds=1)]
    return [
        Claim(id="VAL-A-001", text="it holds", checks=checks),
        Claim(id="VAL-B.2", text="a person looks", manual=True),
        Claim(id="c_3", text="an end", checks=[Check(run=command, guard=True)]),
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_comes_back_byte_for_byte(command: str) -> None:
    """A receipt belongs to exactly this command."""
    made = Contract(setup=command, claims=claims(command))
    made.services = [
        Service(name="web", run=command, ready="true"),
        Service(name="db", run=command, ready="x", seconds=5),
    ]
    assert contract.parse(contract.render(made), "c") == made


@pytest.mark.parametrize("ready", READY)
def test_every_ready_command_comes_back(ready: str) -> None:
    """The command has quotes, backticks, backslashes and spaces of its own."""
    made = Contract(services=[Service(name="web", run="serve ~~~ ```\n~~~~~", ready=ready)])
    assert contract.parse(contract.render(made), "c") == made


@pytest.mark.parametrize(
    "text", ["ends in #", "## a ##", "`code`", "a: b: c", "<b> & \\* _x_", "é 漢 🙂", "manual", "1. x", "#"]
)
def test_every_sentence_comes_back(text: str) -> None:
    """This includes a sentence that looks like Markdown."""
    made = Contract(claims=[Claim(id="A", text=text, manual=True), Claim(id="B", text=text, checks=[Check(run="x")])])
    assert contract.parse(contract.render(made), "c") == made


def test_random_contracts_come_back() -> None:
    """Two hundred contracts, built from text that breaks formats."""
    dice = random.Random(13)
    for _ in range(200):
        made = Contract(setup=nasty(dice), claims=claims(nasty(dice) + nasty(dice)))
        ready = nasty(dice).replace("\n", " ").strip()
        made.services = [Service(name="web", run=nasty(dice), ready=ready, seconds=dice.randrange(1, 99))]
        assert contract.parse(contract.render(made), "c") == made


def test_the_files_on_which_a_setup_depends_come_back() -> None:
    """In their order, with every sign that a plain path may have; a setup without them depends on the commit."""
    made = Contract(setup="npm ci", setup_inputs=["package-lock.json", "web/ä+b@1.x/.npmrc"], claims=claims("x"))
    text = contract.render(made)
    assert text.split("\n")[4] == "```sh setup inputs=package-lock.json,web/ä+b@1.x/.npmrc"
    assert contract.parse(text, "c") == made
    assert contract.parse("```sh setup\nmake\n```\n", "c").setup_inputs == []


def test_a_contract_survives_as_plain_json() -> None:
    """A lane of another machine gets it this way."""
    made = Contract(setup="x", setup_inputs=["a"], claims=claims("w"))
    made.services = [Service(name="web", run="y", ready="z")]
    assert schema.trusted(contract.Contract, schema.plain(made)) == made


def test_what_people_write_is_read_as_documented() -> None:
    """Options in any order, tildes, and a heading before everything."""
    text = (
        "# Validation contract\n\nwords\n\n~~~sh setup\nmake\n~~~\n\n"
        "```sh service seconds=5 ready='a b' name=web\nserve\n```\n\n"
        "### A-1: it holds\n\n```sh check seconds=9 guard\nx\n```\n\n### A-2: somebody looks\n\n  manual\n"
    )
    assert contract.parse(text, "c") == Contract(
        setup="make",
        services=[Service(name="web", run="serve", ready="a b", seconds=5)],
        claims=[
            Claim(id="A-1", text="it holds", checks=[Check(run="x", seconds=9, guard=True)]),
            Claim(id="A-2", text="somebody looks", manual=True),
        ],
    )


GOOD = "# V\n\n### A: it holds\n\n```sh check\nx\n```\n"
BROKEN = [
    (GOOD + "\nwords\n", 9, "not belong in a contract"),
    (GOOD + "\n- a list\n", 9, "not belong"),
    (GOOD + "\n<!-- a comment -->\n", 9, "not belong"),
    (GOOD + "\n## Two\n", 9, "not belong"),
    ("## Two\n", 1, "not belong"),
    (GOOD + "\n### no colon\n", 9, "not 'ID: sentence'"),
    (GOOD + "\n### a b: two words\n", 9, "not 'ID: sentence'"),
    (GOOD + "\n### B:\n", 9, "not 'ID: sentence'"),
    (GOOD + "\n### B: nothing decides\n", 9, "needs either checks"),
    (GOOD + "\nmanual\n", 3, "needs either checks"),
    (GOOD + "\n### a: the same\n\nmanual\n", 9, "appears twice"),
    (GOOD + "\n```sh setup\nlate\n```\n", 9, "not understood here"),
    (GOOD + "\n```sh check later\nx\n```\n", 9, "not understood here"),
    (GOOD + "\n```sh check seconds=soon\nx\n```\n", 9, "whole number"),
    (GOOD + "\n```sh check seconds=0\nx\n```\n", 9, "whole number"),
    (GOOD + "\n```sh\nx\n```\n", 9, "not understood"),
    (GOOD + "\n```\nx\n```\n", 9, "not understood"),
    (GOOD + "\n```python check\nx\n```\n", 9, "not understood"),
    ("```sh check\nx\n```\n", 1, "not understood here"),
    ("```sh service name=web\nx\n```\n", 1, "not understood here"),
    ("```sh service name='a b' ready=x\nx\n```\n", 1, "invalid service"),
    ('```sh service name=web ready="open\nx\n```\n', 1, "not understood"),
    ("```sh setup\na\n```\n\n```sh setup\nb\n```\n", 5, "not understood here"),
    ("```sh setup input=a\na\n```\n", 1, "not understood here"),
    *(
        (f"# V\n\n```sh setup inputs={names}\na\n```\n", 3, "is not a plain path in the project")
        for names in ("", "a,", "../a", "a/../b", "a/./b", "/etc/passwd", "a//b", "a/", "'a b'", "~/a", "*.json", "..")
    ),
]


@pytest.mark.parametrize(("text", "line", "fault"), BROKEN)
def test_what_is_no_contract_is_named_with_its_line(text: str, line: int, fault: str) -> None:
    """A check is never silently dropped."""
    with pytest.raises(BrokenFile, match=fault) as caught:
        contract.parse(text, "contract.md")
    assert (caught.value.path, caught.value.line) == ("contract.md", line)


def test_no_contract_is_an_empty_one(layout: Layout) -> None:
    """Before the first plan."""
    assert contract.load(layout) == Contract()


def test_a_contract_is_read_again_when_it_changed(layout: Layout) -> None:
    """At once, in the same process."""
    for name in ("A", "B"):
        made = Contract(claims=[Claim(id=name, text="it holds", manual=True)])
        put(layout.path(names.CONTRACT), contract.render(made))
        assert contract.load(layout) == made


def test_claims_are_found_by_id(layout: Layout) -> None:
    """The order is as requested; a wrong id is answered with the right ones."""
    made = Contract(setup="make", claims=claims("x"))
    put(layout.path(names.CONTRACT), contract.render(made))
    assert made.claim("c_3").text == "an end"
    assert [claim.id for claim in made.of(["c_3", "none", "VAL-A-001"])] == ["c_3", "VAL-A-001"]
    assert contract.load(layout) == made
    with pytest.raises(UsageFault, match=r"no claim 'none'\. The claims are: VAL-A-001, VAL-B\.2, c_3"):
        made.claim("none")
