"""The vendors' programs that we know, and the shapes of their events; loaded only when one of them thinks."""

from __future__ import annotations

from harness.agents import claude, codex, gemini, opencode

CLIS = {
    "claude": claude.CLI,
    "codex": codex.CLI,
    "gemini": gemini.CLI,
    "opencode": opencode.CLI,
}
