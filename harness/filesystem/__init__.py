"""An agent's files: one interface for every kind of storage; paths never lead out of the root."""
