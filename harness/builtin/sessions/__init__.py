"""Conversations that outlive their process: of any number of users at once, each call in its turn, recorded step by step."""
