"""Composed workspaces of a team: files for narrative, and a database for status, which changes by verbs only."""
