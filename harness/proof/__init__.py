"""Fires checks and writes receipts; the receipts decide which claims are proven."""
