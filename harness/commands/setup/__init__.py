"""What a person asks while setting a mission up: its agent, its configuration, its confinement, and `doctor`."""
