"""Bytes by key, with compare-and-set: one Protocol, a log and a gate over it, and the stores in memory and on disk."""
