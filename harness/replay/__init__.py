"""Past prompts fired again, past missions played again, and what is let go: nothing of it reaches the mission."""
