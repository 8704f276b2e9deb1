import sys

PARTS = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")]
PARTS += [(10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]

number = int(sys.argv[1])
if not 1 <= number <= 3999:
    print("out of range")
    sys.exit(1)
text = ""
for value, letters in PARTS:
    text += letters * (number // value)
    number %= value
print(text)
