"""The library's own tests."""

import unittest

from duration import seconds


class Seconds(unittest.TestCase):
    def test_each_unit(self):
        self.assertEqual([seconds(text) for text in ("2d", "3h", "4m", "5s")], [172800, 10800, 240, 5])

    def test_several_units(self):
        self.assertEqual(seconds("1h30m"), 5400)
        self.assertEqual(seconds("2d 4h"), 187200)


if __name__ == "__main__":
    unittest.main()
