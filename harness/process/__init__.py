"""A child process that leaves nothing behind, however its run ends."""
