"""The parts of a mission: one file format per module, each with its own validation."""
