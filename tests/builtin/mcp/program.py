"""An MCP server over stdio in a few lines, without any package, so that it starts at once; what it answers is the protocol's."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

TOOLS: dict[str, tuple[list[str], bool]] = {  # its arguments, whether it only reads
    "look": (["name"], True),
    "write": (["path", "text"], False),
    "long": (["count"], False),
    "slow": (["seconds"], False),
    "pixel.one": ([], False),
    "die": ([], False),
    "child": ([], False),
}
TOOLS |= {f"thing_{number}": ([], False) for number in range(int(os.environ.get("THINGS", "0")))}
SCHEMAS = json.loads(os.environ.get("SCHEMAS", "{}"))  # by tool, in the place of its own
RESOURCES = {f"file:///{name}": name for name in os.environ.get("RESOURCES", "").split()}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="


def said(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """What comes of a call: a block of content."""
    text = ""
    if name == "look":
        text = f"{given['name']} is {os.environ.get(given['name'], 'not set')}, in {os.getcwd()}"
    elif name == "write":
        with open(given["path"], "w") as file:
            file.write(given["text"])
        text = "written"
    elif name == "long":
        text = "\n".join(f"line {number}" for number in range(given["count"]))
    elif name == "slow":
        time.sleep(given["seconds"])
        text = "at last"
    elif name == "pixel.one":
        return {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    elif name == "die":
        sys.stderr.write("it was time\n")
        sys.stderr.flush()
        os._exit(3)
    elif name == "child":
        pid = os.fork()
        if pid == 0:
            time.sleep(120)
        text = str(pid)
    return {"type": "text", "text": text}


def schema_of(wanted: list[str]) -> dict[str, Any]:
    """The schema of a tool with these arguments."""
    return {"type": "object", "properties": {one: {} for one in wanted}, "required": wanted}


def answer(method: str, given: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; None for one that it does not know."""
    if method == "initialize":
        about = {"name": "tests", "version": "1"}
        has: dict[str, Any] = {"tools": {}, **({"resources": {}} if "RESOURCES" in os.environ else {})}
        return {"protocolVersion": given["protocolVersion"], "capabilities": has, "serverInfo": about,
                "instructions": os.environ.get("SAYS", "")}  # fmt: skip
    if method == "tools/list":
        rows = [
            {
                "name": name,
                "description": f"It can {name}.",
                "inputSchema": SCHEMAS.get(name, schema_of(wanted)),
                "annotations": {"readOnlyHint": reads},
            }
            for name, (wanted, reads) in TOOLS.items()
        ]
        return {"tools": rows}
    if method == "resources/list":
        return {"resources": [{"uri": uri, "name": name, "description": "a\nfile"} for uri, name in RESOURCES.items()]}
    if method == "resources/read" and given["uri"] in RESOURCES:
        return {"contents": [{"uri": given["uri"], "text": f"It is {RESOURCES[given['uri']]}."}]}
    if method == "tools/call":
        if given.get("arguments") == {"name": "_meta"}:
            return {"content": [{"type": "text", "text": json.dumps(given.get("_meta"))}]}
        try:
            return {"content": [said(given["name"], given.get("arguments") or {})]}
        except OSError as fault:
            return {"content": [{"type": "text", "text": str(fault)}], "isError": True}
    return None


def main() -> None:
    """Answer a line at a time."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        result = answer(asked["method"], asked.get("params") or {})
        unknown = {"error": {"code": -32601, "message": "Method not found"}}
        row = {"jsonrpc": "2.0", "id": asked["id"], **({"result": result} if result is not None else unknown)}
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
