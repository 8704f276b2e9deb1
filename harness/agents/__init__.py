"""Who answers a prompt: one Protocol, one file a vendor; no other package knows an agent's name."""
