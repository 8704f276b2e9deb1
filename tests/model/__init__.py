"""Missions with a real model, which `make test-model` plays: what must hold whatever the model answers."""
