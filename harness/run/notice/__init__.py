"""Sends events to the programs and URLs in config.toml, each at least once."""
