"""What a mission learned, L1 to L4: raw entries, memory pages and identities, and what compacts them."""
