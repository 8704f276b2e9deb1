"""The loop over one model: messages, the vendors' requests, and a record of every step that is durable before the next."""
