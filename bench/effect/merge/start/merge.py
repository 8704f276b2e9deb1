"""Merges intervals of whole numbers."""
