"""The tools of the built-in agent: one registry of tools over its files, its mission's verbs and its memory."""
