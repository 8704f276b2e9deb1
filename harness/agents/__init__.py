"""The agents that answer prompts: one Protocol, one file per vendor; no other package knows an agent's name."""
