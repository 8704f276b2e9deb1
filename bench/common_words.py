"""Makes the words of `harness/memory/common.txt` anew: the stems that most documentation has, the commonest first.

    for one in tldr-pages/tldr git/git npm/documentation docker/cli vitejs/vite prometheus/docs pallets/flask; do
        git clone --depth 1 https://github.com/$one clones/$one
    done
    python bench/common_words.py clones [--write]

A document is one page of these (FOLDERS; of tldr its sentences without the commands), or the doc strings of one module of the
standard library of the Python that runs this. A stem counts once a document. What orders it is the mean of its shares of the
documents of the sources, so that a large source says no more than a small one; it has to be in two of them, or it is a word of
that tool's own. `--write` replaces the section; the other sections of the file are written by hand. docs/decisions/0027 has the
commits of which the present file is made.
"""

from __future__ import annotations

import argparse
import ast
import collections
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from harness.memory._words import IDENTIFIER, STOP_WORDS, stem

TABLE = HOME / "harness" / "memory" / "common.txt"
MOST, WIDTH = 3000, 124
SOURCES = 2  # that have a stem
FOLDERS = {
    "tldr-pages/tldr": ("pages/", ".md"),
    "git/git": ("Documentation/", ".adoc"),
    "npm/documentation": ("content/", ".mdx"),
    "docker/cli": ("docs/", ".md"),
    "vitejs/vite": ("docs/", ".md"),
    "prometheus/docs": ("docs/", ".md"),
    "pallets/flask": ("docs/", ".rst"),
}
WORD = re.compile(r"[a-z][a-z']*[a-z]")
TOKEN = re.compile(r"`[^`]*`|<[^>]*>|\S+")


def pages(repository: str, folder: str, ending: str) -> Iterator[str]:
    """The files of a folder at the newest commit, also of a repository without a work tree."""
    git = ["git", "-C", repository]
    listed = subprocess.run([*git, "ls-tree", "-r", "HEAD", folder], check=True, capture_output=True, text=True).stdout
    names = [line.split()[2] for line in listed.splitlines() if line.endswith(ending)]
    with subprocess.Popen([*git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for name in names:
            process.stdin.write(f"{name}\n".encode())
            process.stdin.flush()
            size = int(process.stdout.readline().split()[2])
            yield process.stdout.read(size + 1).decode("utf-8", "replace")


def documents(clones: Path, name: str) -> Iterator[str]:
    """The pages of a source; of one about commands only what it says of them."""
    found = pages(str(clones / name), *FOLDERS[name])
    return map(sentences, found) if name.startswith("tldr") else found


def sentences(text: str) -> str:
    """What a page of tldr says, without its commands."""
    lines = (line for line in text.splitlines() if line[:2] in ("> ", "- "))
    return "\n".join(line for line in lines if "More information" not in line)


def of_modules() -> Iterator[str]:
    """The doc strings of each module of the standard library."""
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" in path.parts or "test" in path.parts or "tests" in path.parts:
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        yield "\n".join(filter(None, (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds))))


def stems(text: str) -> set[str]:
    """The stems of the plain words of a document."""
    tokens = (token.strip(".,;:!?()[]'\"") for token in TOKEN.findall(text) if token[0] not in "`<")
    low = (token.lower() for token in tokens if not IDENTIFIER.search(token))
    return {stem(word) for token in low for word in WORD.findall(token) if word not in STOP_WORDS and "'" not in word}


def ranked(sources: list[Iterator[str]]) -> list[str]:
    """The commonest stems of all sources."""
    total: collections.Counter[str] = collections.Counter()
    known: collections.Counter[str] = collections.Counter()
    for source in sources:
        counts: collections.Counter[str] = collections.Counter()
        size = 0
        for text in source:
            counts.update(stems(text))
            size += 1
        for word, count in counts.items():
            if count > 1:
                total[word] += count / size  # type: ignore[assignment] # a Counter of shares
                known[word] += 1
    able = [word for word in total if len(word) > 1 and known[word] >= SOURCES]
    return sorted(able, key=lambda word: (-total[word], word))[:MOST]


def rewritten(text: str, words: list[str]) -> str:
    """The table with these words."""
    lines, line = [], ""
    for word in words:
        if len(line) + len(word) >= WIDTH:
            lines.append(line)
            line = ""
        line += f" {word}" if line else word
    head, _, rest = text.partition("= words\n")
    comments = [row for row in rest.partition("\n= ")[0].split("\n") if row.startswith("# ")]
    return f"{head}= words\n" + "\n".join([*comments, *lines, line]) + "\n\n= " + rest.partition("\n= ")[2]


def main() -> None:
    """Count, and print or write."""
    parser = argparse.ArgumentParser(description="The words that most documentation has.")
    parser.add_argument("clones", type=Path, help="a folder that has the clones")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    words = ranked([*(documents(args.clones, name) for name in FOLDERS), of_modules()])
    text = rewritten(TABLE.read_text(encoding="utf-8"), words)
    if args.write:
        TABLE.write_text(text, encoding="utf-8")
    else:
        print("\n".join(words))


if __name__ == "__main__":
    main()
