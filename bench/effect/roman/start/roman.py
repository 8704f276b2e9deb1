"""Prints a whole number as a Roman numeral."""
