"""What people and agents may ask of a mission, as plain values and text."""
