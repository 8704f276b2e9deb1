"""An autonomous agent harness whose every fact is a plain file on disk."""

__version__ = "0.1.0"
