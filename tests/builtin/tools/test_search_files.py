"""list_files, glob_files, grep_files: bounded, and what was left out is said."""

from __future__ import annotations

import os

from harness.builtin.tools import _search_files
from tests.builtin.tools.benches import Bench


def filled(bench: Bench) -> Bench:
    """A small project."""
    bench.write("src/main.py", "import os\n\n\ndef main():\n    return os.name\n")
    bench.write("src/util.py", "def helper():\n    return 1\n\n\ndef main_helper():\n    return 2\n")
    bench.write("README.md", "# main\n")
    return bench


# list_files


def test_a_folder_is_listed_with_sizes_and_folders_are_marked(bench: Bench) -> None:
    """The root by default; paths can be given to the other tools as they are."""
    filled(bench)
    assert bench.said("list_files") == "README.md  (7 bytes)\nresults/\nsrc/"
    rows = bench.said("list_files", path="src").split("\n")
    assert [row.split("  ")[0] for row in rows] == ["src/main.py", "src/util.py"]
    assert bench.said("read_file", path=rows[0].split("  ")[0]).startswith("     1\timport os")


def test_an_empty_folder_and_a_missing_one_are_two_answers(bench: Bench) -> None:
    """The missing one is a failure."""
    (bench.tree / "empty").mkdir()
    assert "empty folder" in bench.said("list_files", path="empty")
    assert "Did you mean empty?" in bench.refused("list_files", path="emty")


def test_a_large_folder_is_cut_and_says_how_much_is_missing(bench: Bench) -> None:
    """Exactly."""
    for number in range(_search_files.MOST_LISTED + 5):
        bench.write(f"many/{number}", "")
    said = bench.said("list_files", path="many")
    assert said.count("\n") == _search_files.MOST_LISTED + 1
    assert "[5 more entries left out." in said


# glob_files


def test_files_are_found_newest_first(bench: Bench) -> None:
    """So what was worked on last is seen first."""
    filled(bench)
    os.utime(bench.tree / "src/util.py", (1, 1))
    assert bench.said("glob_files", pattern="**/*.py").split("\n")[0].startswith("src/main.py")
    os.utime(bench.tree / "src/main.py", (0, 0))
    assert bench.said("glob_files", pattern="**/*.py").split("\n")[0].startswith("src/util.py")


def test_a_glob_finds_folders_and_what_is_hidden_when_asked(bench: Bench) -> None:
    """Folders by a slash at the end, marked as in a listing."""
    filled(bench)
    bench.write(".github/workflows/ci.yml", "on: push\n")
    assert bench.said("glob_files", pattern=".github/**") == ".github/workflows/ci.yml  (9 bytes)"
    assert bench.said("glob_files", pattern=".github/*/") == ".github/workflows/"
    assert bench.said("glob_files", pattern="s*/") == "src/"
    assert bench.said("glob_files", pattern="s*").startswith("No file below . matches s*.")


def test_a_glob_is_bounded_and_nothing_found_is_no_fault(bench: Bench) -> None:
    """What is missing is said."""
    for number in range(_search_files.MOST_GLOBBED + 7):
        bench.write(f"many/{number}.txt", "")
    said = bench.said("glob_files", pattern="*.txt", path="many")
    assert "[7 more files left out." in said
    assert said.count(".txt") == _search_files.MOST_GLOBBED
    assert bench.said("glob_files", pattern="*.rs").startswith("No file below . matches *.rs.")


# grep_files


def test_lines_are_found_by_regular_expression_with_their_place(bench: Bench) -> None:
    """path:line:text."""
    filled(bench)
    assert bench.said("grep_files", pattern=r"def \w+\(") == (
        "src/main.py:4:def main():\nsrc/util.py:1:def helper():\nsrc/util.py:5:def main_helper():"
    )
    assert bench.said("grep_files", pattern="MAIN", ignore_case=True, glob="*.md") == "README.md:1:# main"
    assert bench.said("grep_files", pattern="main(", literal=True) == "src/main.py:4:def main():"
    assert bench.said("grep_files", pattern="import", path="src/main.py") == "src/main.py:1:import os"


def test_files_and_counts_are_other_modes(bench: Bench) -> None:
    """For an overview."""
    filled(bench)
    assert bench.said("grep_files", pattern="return", mode="files") == "src/main.py\nsrc/util.py"
    assert bench.said("grep_files", pattern="return", mode="count") == (
        "src/main.py:1\nsrc/util.py:2\n\n[3 matching lines in 2 files.]"
    )


def test_context_shows_the_lines_around_each_once(bench: Bench) -> None:
    """As grep prints them: `-` for a line of context, `--` between parts; parts that meet are one."""
    bench.write("a.txt", "".join(f"{number}\n" for number in range(1, 13)))
    assert bench.said("grep_files", pattern="^(3|5|11)$", context=1) == (
        "a.txt-2-2\na.txt:3:3\na.txt-4-4\na.txt:5:5\na.txt-6-6\n--\na.txt-10-10\na.txt:11:11\na.txt-12-12"
    )


def test_matches_are_bounded_in_number_and_in_length(bench: Bench) -> None:
    """And say so."""
    bench.write("log.txt", "error\n" * 500)
    bench.write("min.js", "error" + "x" * 100_000 + "\n")
    said = bench.said("grep_files", pattern="error")
    assert "[301 more matching lines left out." in said or "[More matching lines left out." in said
    assert len(said) < _search_files.MOST_MATCHES * (_search_files.LONGEST_MATCH + 40)
    only = bench.said("grep_files", pattern="error", path="min.js")
    assert len(only) < 500
    assert bench.said("grep_files", pattern="error", limit=3, path="log.txt").count("log.txt:") == 3


def test_nothing_found_is_no_fault_and_a_bad_pattern_is_one(bench: Bench) -> None:
    """The first names what was looked for."""
    filled(bench)
    assert bench.said("grep_files", pattern="nowhere", path="src", glob="*.py") == (
        "No line below src in *.py matches nowhere."
    )
    assert "main(" in bench.refused("grep_files", pattern="main(")


def test_lines_that_are_no_utf8_are_searched_too(bench: Bench) -> None:
    """Their bytes stand as escapes."""
    bench.write("latin.txt", "café au lait\n".encode("latin-1"))
    assert bench.said("grep_files", pattern="lait") == "latin.txt:1:caf\\xe9 au lait"
