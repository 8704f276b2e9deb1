"""Missions in public repositories, which `make test-repositories` plays: each from its source archive, by playbook, to DONE."""
