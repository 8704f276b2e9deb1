"""The only writer of state: whole-file replacement, durable appends, and several changes at once through a journal."""
