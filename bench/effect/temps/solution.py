"""A table of temperatures: Celsius and Fahrenheit, every ten degrees or as asked."""

import sys


def line(celsius):
    return f"{celsius:5d}{celsius * 9 / 5 + 32:8.1f}"


def main(first, last, step=10):
    down = -1 if first > last else 1
    for celsius in range(first, last + down, down * step):
        print(line(celsius))
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
