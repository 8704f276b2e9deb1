"""What past runs were asked: found, rebuilt byte for byte, and explained, from what is on disk alone."""
