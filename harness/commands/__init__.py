"""Commands of people and agents on a mission; they return plain values and text."""
