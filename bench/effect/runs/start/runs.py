"""Packs and unpacks repeated characters."""
