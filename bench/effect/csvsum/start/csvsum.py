"""Prints the sum of a column of a CSV file."""
