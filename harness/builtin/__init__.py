"""The built-in agent: a loop over one model, in which every request can be rebuilt and every step is durable."""
