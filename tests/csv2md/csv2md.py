"""Print a CSV file as a Markdown table."""

import csv
import sys


def table(rows: list[list[str]]) -> str:
    """Return the rows as a Markdown table, the first one as its header."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def main() -> None:
    """Read the file that the first argument names."""
    with open(sys.argv[1], newline="") as file:
        print(table(list(csv.reader(file))))  # noqa: T201 - a program


if __name__ == "__main__":
    main()
