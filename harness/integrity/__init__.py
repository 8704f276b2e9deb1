"""What an agent may not change: one run holds the mission, and what differs from its state is put back and named."""
