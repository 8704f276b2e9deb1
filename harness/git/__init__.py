"""All git calls of the harness, and the few operations inside `.git` that need no call."""
