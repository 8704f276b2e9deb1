"""Runs checks and writes receipts, which decide which claims are proven."""
