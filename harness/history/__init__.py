"""Past runs looked at: prompts rebuilt and explained, the state as it was, search, export; and a way back to it."""
