"""The workplace of a run, its confinement, and the protection and recovery of its state under the mission lock."""
