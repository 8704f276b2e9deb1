"""Checks become receipts, and receipts decide which claims are proven."""
