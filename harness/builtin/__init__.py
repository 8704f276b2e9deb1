"""The built-in agent: a loop of ours over one model, whose every request can be rebuilt and whose every step is durable."""
