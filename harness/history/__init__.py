"""What past runs were asked: found again, rebuilt byte for byte, explained, and pruned, from what is on disk alone."""
