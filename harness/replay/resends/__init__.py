"""Past prompts fired again, changed or as they were, and compared with the runs that they come from."""
