import sys

merged: list[list[int]] = []
for begin, end in sorted([int(word) for word in line.split()] for line in sys.stdin):
    if merged and begin <= merged[-1][1]:
        merged[-1][1] = max(end, merged[-1][1])
    else:
        merged.append([begin, end])
for begin, end in merged:
    print(begin, end)
