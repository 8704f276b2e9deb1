"""The known agent CLIs and the shapes of their events; imported only when one of them runs."""

from __future__ import annotations

from harness.agents import _claude, _codex, _gemini, _opencode, builtin
from harness.agents.base import LOOP
from harness.agents.program import CliFacts

EDITS = "edits"  # the format of a program that edits files and runs no command
CLIS = {
    "claude": _claude.CLI,
    "codex": _codex.CLI,
    "gemini": _gemini.CLI,
    "opencode": _opencode.CLI,
    LOOP: builtin.CLI,
}


SWITCHES = [  # select the provider of its models
    *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_MANTLE", "CLAUDE_CODE_USE_ANTHROPIC_AWS"),
    *("CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
]
PLACES = [  # locate a provider and its models; not keys
    *("AWS_PROFILE", "AWS_REGION", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "ANTHROPIC_VERTEX_PROJECT_ID"),
    *("CLOUD_ML_REGION", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"),
]
GOOGLE = "${GOOGLE_APPLICATION_CREDENTIALS:-}"  # a file
AWS = ["AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_CONFIG_FILE"]
OF_AWS = [  # a login there; the last four are those of a machine or a container
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"),
    *("AWS_SHARED_CREDENTIALS_FILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    *("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
]
OF_GOOGLE = ["CLOUD_ML_REGION", "GOOGLE_CLOUD_PROJECT", "GOOGLE_APPLICATION_CREDENTIALS"]
ABOUT = {
    "claude": CliFacts(
        tried="2.1.197",
        login="claude, then /login; or ANTHROPIC_API_KEY",
        keys=["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", *SWITCHES],
        logins=["$CLAUDE_CONFIG_DIR/.credentials.json", "~/.claude/.credentials.json"],
        expires=["claudeAiOauth.expiresAt"],
        renews=["claudeAiOauth.refreshToken"],
        needs={
            "": [
                *(
                    "CLAUDE_CODE_OAUTH_REFRESH_TOKEN",
                    "CLAUDE_CODE_CLIENT_KEY",
                    "ANTHROPIC_CUSTOM_HEADERS",
                    "ANTHROPIC_BASE_URL",
                ),
                *("ANTHROPIC_*", "CLAUDE_*", "DISABLE_*", "API_TIMEOUT_MS", "MAX_THINKING_TOKENS", "IS_SANDBOX", *AWS),
            ],
            "CLAUDE_CODE_USE_BEDROCK": OF_AWS,
            "CLAUDE_CODE_USE_MANTLE": OF_AWS,
            "CLAUDE_CODE_USE_ANTHROPIC_AWS": ["ANTHROPIC_AWS_API_KEY", *OF_AWS],
            "CLAUDE_CODE_USE_VERTEX": [*OF_GOOGLE, "VERTEX_REGION_*"],
            "CLAUDE_CODE_USE_FOUNDRY": ["ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_AUTH_TOKEN", "AZURE_*"],
        },
        writes=["${CLAUDE_CONFIG_DIR:-~/.claude}"],
        files=["~/.claude.json", GOOGLE],
        hides={"~/.claude/backups": "~/.claude.json"},  # it says at each start that it could restore that file
        reads=["CLAUDE.md", ".claude/CLAUDE.md"],
        skills=[".claude/skills"],
        tools={
            "read_file": ["Read"],
            "write_file": ["Write"],
            "edit_file": ["Edit", "MultiEdit", "NotebookEdit"],
            "list_files": ["LS"],
            "glob_files": ["Glob"],
            "grep_files": ["Grep"],
            "execute": ["Bash"],
            "todo_write": ["TodoWrite"],
            "web_fetch": ["WebFetch"],
            "web_search": ["WebSearch"],
            "agent_spawn": ["Task"],
            "load_skill": ["Skill"],
        },
        deny_flag="--disallowedTools",
        allow_flag="--tools",
    ),
    "codex": CliFacts(
        tried="0.169.0",
        login="codex login; or CODEX_API_KEY",
        keys=["CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY"],
        logins=["$CODEX_HOME/auth.json", "~/.codex/auth.json"],
        expires=["tokens.access_token"],
        renews=["tokens.refresh_token"],
        needs={"": ["OPENAI_BASE_URL", "OPENAI_*", "CODEX_*"]},
        writes=["${CODEX_HOME:-~/.codex}"],
        reads=["AGENTS.md"],
        skills=[".agents/skills"],
        silent=["-c", "project_doc_max_bytes=0"],
    ),
    "gemini": CliFacts(
        tried="0.61.0",
        login="gemini, once by hand; or GEMINI_API_KEY",
        keys=["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"],
        logins=["$GEMINI_CLI_HOME/.gemini/oauth_creds.json", "~/.gemini/oauth_creds.json"],
        expires=["expiry_date"],
        renews=["refresh_token"],
        needs={
            "": ["GOOGLE_GEMINI_BASE_URL", "GEMINI_*", "GOOGLE_*"],
            "GOOGLE_GENAI_USE_VERTEXAI": OF_GOOGLE,
            "GOOGLE_GENAI_USE_GCA": ["GOOGLE_CLOUD_ACCESS_TOKEN"],
        },
        writes=["${GEMINI_CLI_HOME:-~}/.gemini"],
        files=[GOOGLE],
        reads=["GEMINI.md"],
        skills=[".gemini/skills", ".agents/skills"],
    ),
    "opencode": CliFacts(
        tried="1.18.33",
        login="opencode auth login; or its provider's key",
        keys=["OPENCODE_CONFIG_CONTENT"],
        logins=["$XDG_DATA_HOME/opencode/auth.json", "~/.local/share/opencode/auth.json"],
        expires=["*.expires"],
        renews=["*.refresh"],
        needs={"": ["*_API_KEY", "OPENCODE_*", *PLACES]},  # of any provider; broader tokens need [env] pass
        writes=[
            "${XDG_CONFIG_HOME:-~/.config}/opencode",
            "${XDG_DATA_HOME:-~/.local/share}/opencode",
            "${XDG_CACHE_HOME:-~/.cache}/opencode",
            "${XDG_STATE_HOME:-~/.local/state}/opencode",
        ],
        reads=["AGENTS.md"],
        instead=["CLAUDE.md"],
        skills=[".opencode/skills", ".opencode/skill", ".claude/skills", ".agents/skills"],
        silenced=True,
    ),
    LOOP: builtin.ABOUT,
}
