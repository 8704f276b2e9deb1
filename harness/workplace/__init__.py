"""Where a run works, what it may touch, and how its state is protected and restored: one run holds the mission lock."""
