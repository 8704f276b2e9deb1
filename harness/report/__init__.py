"""Read-only views of a mission for people: an HTML page with everything, and a live view in a terminal."""
