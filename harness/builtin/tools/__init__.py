"""What an agent of ours can do: one registry of tools over its files, its mission's verbs and its memory."""
