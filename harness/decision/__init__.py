"""What is due: read-only views of a mission and pure rules over them."""
