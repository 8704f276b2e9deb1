"""The known agent CLIs and the shapes of their events; imported only when one of them runs."""

from __future__ import annotations

from harness.agents import claude, codex, gemini, opencode
from harness.base.record import Record

CLIS = {
    "claude": claude.CLI,
    "codex": codex.CLI,
    "gemini": gemini.CLI,
    "opencode": opencode.CLI,
}


class About(Record):
    """What is known of a program without a model call: the version that was `tried`, how to `login`, and variables or
    files; any of them shows a login (`$NAME` and `~` are expanded)."""

    tried: str
    login: str
    keys: list[str]
    logins: list[str]


ABOUT = {
    "claude": About(
        tried="2.1.197",
        login="claude, then /login; or ANTHROPIC_API_KEY",
        keys=["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK"],
        logins=["$CLAUDE_CONFIG_DIR/.credentials.json", "~/.claude/.credentials.json"],
    ),
    "codex": About(
        tried="0.169.0",
        login="codex login; or CODEX_API_KEY",
        keys=["CODEX_API_KEY", "OPENAI_API_KEY"],
        logins=["$CODEX_HOME/auth.json", "~/.codex/auth.json"],
    ),
    "gemini": About(
        tried="0.61.0",
        login="gemini, once by hand; or GEMINI_API_KEY",
        keys=["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"],
        logins=["~/.gemini/oauth_creds.json"],
    ),
    "opencode": About(
        tried="1.18.33",
        login="opencode auth login; or its provider's key",
        keys=["OPENCODE_CONFIG_CONTENT"],
        logins=["$XDG_DATA_HOME/opencode/auth.json", "~/.local/share/opencode/auth.json"],
    ),
}
