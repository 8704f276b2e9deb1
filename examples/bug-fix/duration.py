"""How long `1h30m` is."""

import re

UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def seconds(text):
    """Return the seconds of a duration such as `90s`, `1h30m` or `2d 4h`."""
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([dhms])", text))
