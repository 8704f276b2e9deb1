"""An agent's files: one interface over every place that they can be in; paths never lead out of it."""
