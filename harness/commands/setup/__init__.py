"""A person's commands for the setup of a mission: its agent, configuration, confinement, and `doctor`."""
