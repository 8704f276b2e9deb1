"""The one writer of state: files replaced whole, lines appended durably, several changes at once through a journal."""
