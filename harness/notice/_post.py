"""Posts JSON to an address: a program of its own, so that no process of a run loads the library for it.

Standard input: the address on the first line, the JSON behind it. It ends with 0 where the answer is 2xx.
"""

from __future__ import annotations

import base64
import http.client
import sys
import urllib.error
import urllib.parse
import urllib.request


class _Straight(urllib.request.HTTPRedirectHandler):
    """Goes nowhere else: there the event would arrive as a GET without its body, and count as delivered."""

    def redirect_request(self, *_: object) -> None:
        """An HTTPError follows."""


def main() -> None:
    """Post; the end is what was wrong, if anything."""
    address, _, body = sys.stdin.buffer.read().partition(b"\n")
    headers = {"Content-Type": "application/json", "User-Agent": "harness"}
    try:
        parts = urllib.parse.urlsplit(address.decode())
        login, at, host = parts.netloc.rpartition("@")
        if at:  # the library would take it for a part of the host's name
            name = urllib.parse.unquote_to_bytes(login if ":" in login else f"{login}:")
            headers["Authorization"] = f"Basic {base64.b64encode(name).decode()}"
        whole = parts._replace(netloc=host).geturl()
        request = urllib.request.Request(whole, data=body, headers=headers, method="POST")
        urllib.request.build_opener(_Straight).open(request).close()  # whoever called this one ends it in time
    except urllib.error.HTTPError as fault:
        elsewhere = "; give the address that it points to" if fault.code // 100 == 3 else ""
        raise SystemExit(f"{fault}{elsewhere}") from None
    except OSError as fault:  # URLError is one
        raise SystemExit(str(fault)) from None
    except (http.client.InvalidURL, ValueError):  # their words have the address, which may be a secret
        raise SystemExit("the address is not valid") from None
    except http.client.HTTPException as fault:
        raise SystemExit(f"the answer is not HTTP: {type(fault).__name__}") from None


if __name__ == "__main__":
    main()
