"""Past prompts sent again, unchanged or edited, and compared with the original runs."""
