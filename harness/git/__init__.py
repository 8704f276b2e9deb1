"""Every git call of ours, and the few things done inside `.git` without one."""
