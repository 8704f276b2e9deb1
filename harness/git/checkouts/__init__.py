"""Folders with the files of a commit: worktrees, fresh clones, and how files are written into them."""
