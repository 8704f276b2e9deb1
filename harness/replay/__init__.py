"""Replays past prompts and past missions in isolation, and removes or restores what runs left."""
