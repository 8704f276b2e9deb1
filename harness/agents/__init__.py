"""The agents that answer prompts: one Protocol, one file per vendor; other packages do not know agents by name."""
