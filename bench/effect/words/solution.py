"""Counts the words of standard input, the most frequent first."""

import sys


def count(text):
    counts = {}
    for word in text.lower().split():
        counts[word] = counts.get(word, 0) + 1
    return counts


def main():
    counts = count(sys.stdin.read())
    if not counts:
        print("no words")
        return 1
    for word, number in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        print(number, word)
    return 0


if __name__ == "__main__":
    sys.exit(main())
