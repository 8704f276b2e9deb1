"""MCP servers of a workspace: reached once a process, their tools offered beside our own, and gone with the process."""
