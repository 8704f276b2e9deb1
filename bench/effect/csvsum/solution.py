import csv
import sys
from contextlib import suppress

path, column = sys.argv[1:]
total = 0.0
with open(path, newline="") as file:
    for row in csv.DictReader(file):
        with suppress(ValueError):
            total += float(row[column])
print(f"{total:.2f}")
