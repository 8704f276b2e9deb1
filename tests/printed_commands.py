"""The shell commands that the program prints for people and models: collected from the source of its messages, read from its
output, and run."""

from __future__ import annotations

import ast
import functools
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.missions import CHECKOUT, Done, House

MODULES = sorted([*(CHECKOUT / "harness").rglob("*.py"), *(CHECKOUT / "roles").glob("*.py")])
OWN, END, GAP = "\x01", "\x02", "\x03"  # in the text of a message: around a call of `command`; any other placeholder
PROGRAMS = ("bash", "cd", "chmod", "crontab", "export", "gh", "harness", "mkdir", "pip", "unset")
BEGINS = r"(?:^|(?<=`)|(?<=: )|(?<=   )|(?<=\bor )|(?<=\brun )|(?<=\bRun )|(?<=\x03))"
ENDS = r"(?=`|$|   |\.$|[.,;:] |\)| or | in \x03| and your )"
WORDS = r"""(?:--?[\w-]+(?: [a-z]+)?|'[^']*'|"[^"]*"|[A-Z][A-Z0-9_-]*|\w+=\S+|\x03)"""  # what may follow one of ours


def text_of(node: ast.AST) -> str | None:
    """The text of a literal or of a call of `command`, with a sign in place of each placeholder; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"\{\w+\}", GAP, node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(one) or GAP for one in node.values)
    return _own(node.value if isinstance(node, ast.FormattedValue) else node) or None


def _own(node: ast.AST) -> str:
    """A call such as `command("status")`, with its words; "" for anything else."""
    if not isinstance(node, ast.Call) or not re.fullmatch(r"(layout\.)?command", ast.unparse(node.func)):
        return ""
    return f"{OWN}{' '.join(text_of(one) or GAP for one in node.args)}{END}"


@functools.cache
def messages() -> list[tuple[str, str]]:
    """(module, text) of every text in the source but docstrings that has blanks or a command of ours: read once."""
    return [(name, text) for name, text in _texts() if " " in text or OWN in text]


def _texts() -> Iterator[tuple[str, str]]:
    for path in MODULES:
        tree = ast.parse(path.read_text())
        done = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
        name = ".".join(path.relative_to(CHECKOUT).with_suffix("").parts).removeprefix("harness.")
        for node in ast.walk(tree):
            if id(node) not in done and (text := text_of(node)) is not None:
                done |= {id(one) for one in ast.walk(node)}
                yield name, text


def own_commands() -> Iterator[tuple[str, str]]:
    """(module, words) of every command of the harness that a message has by `command`."""
    for module, text in messages():
        for found in re.finditer(rf"{OWN}([^{END}]*){END}((?: {WORDS})*)", text):
            yield module, (found[1] + found[2]).strip()


def other_commands() -> Counter[str]:
    """{`module: command`: how often} of the commands of other programs, and of those in backticks."""
    verbs = subprocess.run(["git", "--list-cmds=main"], capture_output=True, text=True, check=True).stdout.split()
    git = rf"{GAP} (?:[a-z]+ )?--?[a-z]|git (?:-C \S+ )?(?:{'|'.join(map(re.escape, verbs))})(?![\w-]| failed)"
    shell = re.compile(rf"{BEGINS}((?:{git}|(?:{'|'.join(PROGRAMS)}) (?=\S))[^`\n]*?){ENDS}")
    found = Counter[str]()
    for module, text in messages():
        shown = [one[1] for one in shell.finditer(text)]
        ticked = [one for one in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text) if " " in one and one not in shown]
        for one in shown + ticked:
            found[f"{module}: {one.strip().replace(OWN, 'harness ').replace(END, '').replace(GAP, '…')}"] += 1
    return found


def printed(key: str, text: str) -> str:
    """The command of this key as the text has it."""
    form = re.escape(key.partition(": ")[2]).replace("harness\\ ", "(?:harness|run\\.sh)\\ ", 1)
    form = form.replace("…", r"(?:'[^']*'|[^\s']+?)+?")
    found = re.search(rf"{form}(?=`|\n|\.?$|   |\.? +[A-Z]|[,;:] | or |\))", text, re.M)
    assert found, (key, text)
    return found[0]


def shell(house: House, command: str, code: int | None = 0, where: Path | None = None) -> Done:
    """Run it as a person would, who has a name in git."""
    person = {f"GIT_{who}_{what}": "p@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    made = house.run(["bash", "-c", command], where, person)
    assert code in (None, made.code), (command, made)
    return made


def own(house: House, command: str) -> Done:
    """Run one of ours as printed."""
    return house.harness(*shlex.split(command)[1:])
