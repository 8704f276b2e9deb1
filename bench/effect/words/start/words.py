"""Counts the words of standard input, in the order in which they come."""

import sys


def count(text):
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return counts


def main():
    counts = count(sys.stdin.read())
    if not counts:
        print("no words")
        return 1
    for word, number in counts.items():
        print(number, word)
    return 0


if __name__ == "__main__":
    sys.exit(main())
