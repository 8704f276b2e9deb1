"""What happens reaches the programs and addresses that a person named in config.toml, each event at least once."""
