"""What people and agents ask of a mission: orders in orders.jsonl, and verbs of a run."""
