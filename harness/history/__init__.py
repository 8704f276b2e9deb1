"""What past runs were asked: found again, rebuilt byte for byte, and explained, from what is on disk alone."""
