"""What a mission is made of: one format a module, each with its own checks."""
