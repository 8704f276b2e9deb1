"""Posts JSON to a URL, as a separate program, so that runs do not load the HTTP library.
Standard input: the URL on the first line, then the JSON. Exits with 0 if the answer is 2xx.
"""

from __future__ import annotations

import base64
import http.client
import sys
import urllib.error
import urllib.parse
import urllib.request


class _Straight(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which would deliver a GET without the body and count as success."""

    def redirect_request(self, *_: object) -> None:
        """Refuse, so that an HTTPError follows."""


def main() -> None:
    """Post the JSON; raises SystemExit with the fault, if any."""
    address, _, body = sys.stdin.buffer.read().partition(b"\n")
    headers = {"Content-Type": "application/json", "User-Agent": "harness"}
    try:
        parts = urllib.parse.urlsplit(address.decode())
        login, at, host = parts.netloc.rpartition("@")
        if at:  # the library would treat it as part of the host name
            name = urllib.parse.unquote_to_bytes(login if ":" in login else f"{login}:")
            headers["Authorization"] = f"Basic {base64.b64encode(name).decode()}"
        whole = parts._replace(netloc=host).geturl()
        request = urllib.request.Request(whole, data=body, headers=headers, method="POST")
        urllib.request.build_opener(_Straight).open(request).close()  # the caller enforces the timeout
    except urllib.error.HTTPError as fault:
        elsewhere = "; give the address that it points to" if fault.code // 100 == 3 else ""
        raise SystemExit(f"{fault}{elsewhere}") from None
    except OSError as fault:  # URLError is one
        raise SystemExit(str(fault)) from None
    except (http.client.InvalidURL, ValueError):  # their message contains the URL, which may be a secret
        raise SystemExit("the address is not valid") from None
    except http.client.HTTPException as fault:
        raise SystemExit(f"the answer is not HTTP: {type(fault).__name__}") from None


if __name__ == "__main__":
    main()
