"""What a person sees of a mission: one page of all of it, and a live view in a terminal; both only read it."""
