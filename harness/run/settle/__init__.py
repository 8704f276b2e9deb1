"""What each role's reply does to the mission, one module a role."""
