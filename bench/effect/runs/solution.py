import itertools
import re
import sys

action, text = sys.argv[1:]
if action == "decode":
    print("".join(int(number) * sign for number, sign in re.findall(r"(\d+)(\D)", text)))
else:
    print("".join(f"{len(list(run))}{sign}" for sign, run in itertools.groupby(text)))
