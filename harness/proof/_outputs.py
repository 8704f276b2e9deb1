"""What a check leaves to read: its output and, when it ran again, its trace: the commands of its shell as `set -x` prints them.
The check's programs inherit the socket of the trace, which they can write but not read; a traced run is never green."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Mapping

from harness.base import console, faults, redaction
from harness.mission import receipts

# What was stderr takes the trace, and nothing is exported. An old bash, or a limit below this descriptor, gives no trace.
BEGIN = r"if ((BASH_VERSINFO > 4)) && exec 243>&2 2>&1; then BASH_XTRACEFD=243 PS4=$'\x1e+$? '; set -x; else exec 2>&1; fi; "
MARK = b"\x1e"
MAX_COMMANDS, COMMAND_BYTES = 1024, 4096  # kept until secrets are masked
LINE_CHARS, TRACE_CHARS = 200, 2048
TELLING = re.compile(("(?m)" + "|".join(faults.TELLING)).encode())
SHORTEST, LONGEST = 4, 256  # characters of a value that is masked; behind a longer one the command is cut off
UNSEEN = r"['\\\s\x00-\x1f\x7f]"
QUOTING = rf"(?:{UNSEEN}|\\[0-7]{{3}}|\\[a-zE])*"  # what bash may print between two characters of a value


class OutputDigest:
    """Head and tail of an output of any length, as plain text, with the first lines between them that explain a failure, and
    the digest of all of its bytes."""

    begin = ""  # shell code to put before the command

    def __init__(self) -> None:
        self.head, self.middle, self.tail, self.length, self.hash = b"", b"", b"", 0, hashlib.sha256()
        self.plain = console.PlainOutput()

    def take(self, _: str, chunk: bytes) -> None:
        """Add one more chunk; an empty one ends the output."""
        self.hash.update(chunk)
        chunk = self.plain.add(chunk)
        self.length += len(chunk)
        room = receipts.HEAD_BYTES - len(self.head)
        self.head += chunk[:room]
        rest = self.tail + chunk[room:]
        self.tail, between = rest[-receipts.TAIL_BYTES :], self.middle + rest[: -receipts.TAIL_BYTES]
        found = TELLING.search(between)
        at = max((found.start() if found else len(between)) - receipts.MIDDLE_BYTES // 2, 0)
        self.middle = between[at:][: receipts.MIDDLE_BYTES]

    def text(self) -> str:
        """The output as stored in a receipt; a cut states the number of omitted bytes."""
        self.take("stdout", b"")
        return receipts.shortened(self.head, self.middle * bool(TELLING.search(self.middle)), self.tail, self.length)

    def trace(self) -> str:
        """The trace as stored in a receipt."""
        return ""


class TracedOutput(OutputDigest):
    """The output of a traced command. `values`: {name: value} of the variables that the trace does not show."""

    begin = BEGIN

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__()
        self.commands = deque([b""], maxlen=MAX_COMMANDS)
        bare = [(re.sub(UNSEEN, "", value), name) for name, value in values.items()]
        longest_first = sorted(bare, key=lambda one: -len(one[0]))
        self.hidden = [(_printed(value), f"[{name}]") for value, name in longest_first if len(value) >= SHORTEST]

    def take(self, stream: str, chunk: bytes) -> None:
        if stream == "stdout":
            super().take(stream, chunk)
            return
        first, *rest = chunk.split(MARK)
        self.commands[-1] = (self.commands[-1] + first)[:COMMAND_BYTES]
        self.commands.extend(command[:COMMAND_BYTES] for command in rest)

    def trace(self) -> str:
        lines: deque[str] = deque()
        for line in filter(None, map(self._line, reversed(self.commands))):
            if len("\n".join([line, *lines])) > TRACE_CHARS:
                break
            lines.appendleft(line)
        return "\n".join(lines)

    def _line(self, command: bytes) -> str:
        """A command as shown: `+ test a = b`, or `+1 exit 1` after a command that ended with 1; "" for none."""
        if not re.match(rb"\+\d+ ", command):
            return ""
        text = command.decode("utf-8", "surrogateescape").rstrip()
        for pattern, name in self.hidden:
            text = pattern.sub(name, text)
        text = redaction.received(text).replace("\n", "\\n")
        return faults.cut(re.sub(r"^\+0 ", "+ ", text), LINE_CHARS)


def _printed(value: str) -> re.Pattern[str]:
    """The pattern of a value in a trace, however bash quotes it."""
    octal = {char: "".join(rf"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape")) for char in value}
    chars = [re.escape(char) if char.isascii() else f"(?:{char}|{octal[char]})" for char in value[:LONGEST]]
    return re.compile(QUOTING.join(chars) + (".*" if len(value) > LONGEST else ""), re.DOTALL)
