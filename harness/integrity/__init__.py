"""Protects the mission's state: one run holds the mission lock, and what an agent changes without permission is restored."""
