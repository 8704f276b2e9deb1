"""Posts JSON to an address: a program of its own, so that no process of a run loads the library for it.

Standard input: the address on the first line, the JSON behind it. It ends with 0 where the answer is 2xx.
"""

from __future__ import annotations

import sys

SECONDS = 30


def main() -> None:
    """Post; the end is what was wrong, if anything."""
    import urllib.error
    import urllib.request

    address, _, body = sys.stdin.buffer.read().partition(b"\n")
    headers = {"Content-Type": "application/json", "User-Agent": "harness"}
    request = urllib.request.Request(address.decode(), data=body, headers=headers, method="POST")
    try:
        urllib.request.urlopen(request, timeout=SECONDS).close()
    except (urllib.error.URLError, OSError, ValueError) as fault:  # HTTPError is one of the first
        raise SystemExit(str(fault)) from None


if __name__ == "__main__":
    main()
