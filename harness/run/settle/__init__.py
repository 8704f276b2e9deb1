"""Applies each role's reply to the mission, one module per role."""
