"""A table of temperatures: Celsius and Fahrenheit, every ten degrees."""

import sys


def line(celsius):
    return f"{celsius:5d}{celsius * 9 / 5 + 32:8.1f}"


def main():
    first, last = int(sys.argv[1]), int(sys.argv[2])
    for celsius in range(first, last + 1, 10):
        print(line(celsius))
    return 0


if __name__ == "__main__":
    sys.exit(main())
