# harness: what a developer or a newcomer can ask for.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
EXTRAS := dev agent otel
READY := $(VENV)/.ready
PY := $(VENV)/bin/python

.PHONY: help setup demo demo-store demo-team demo-machines test test-versions test-bash32 test-agents test-peers check fix bench torture clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 15

setup: $(READY) ## make .venv with everything the project needs

$(READY): pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "harness needs Python >= 3.11; say which: make setup PYTHON=python3.12"; exit 69; }
	$(PYTHON) -m venv $(VENV)
	@$(PY) -c 'import sys, tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; print("\n".join(sum((p["optional-dependencies"][name] for name in sys.argv[1:]), p["dependencies"])))' $(EXTRAS) > $(VENV)/requirements.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -r $(VENV)/requirements.txt
	@env -u PYTHONDONTWRITEBYTECODE $(PY) -m compileall -q harness roles $(VENV)/lib || true
	@touch $(READY)

demo: setup ## run the example mission to DONE, offline
	@bash examples/demo.sh

demo-store: setup ## two users and two processes over Redis and PostgreSQL, one process killed (apt install redis-server postgresql)
	@$(PY) examples/demo_store.py

demo-team: setup ## three users and three threads over PostgreSQL and S3, two agents killed (SQLITE=1: over SQLite and a folder)
	@$(PY) examples/demo_team.py

demo-machines: setup ## a mission on three workers of Dask, one of them killed (apt install bubblewrap)
	@$(PY) examples/demo_machines.py

test: setup ## run the tests, on all cores (those of the report open it where a Chromium is: apt install chromium)
	@$(PY) tests/cores.py

test-versions: setup ## run the tests on each Python >= 3.11 found here (VERSIONS=newest: only on the newest, if .venv is older)
	@$(PY) tests/versions.py $(VERSIONS)

test-bash32: setup ## run.sh's tests under bash 3.2, built from source once (git, a C compiler)
	@$(PY) tests/bash32.py

check: setup ## lint, format, types, shell scripts, house rules
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/shellcheck run.sh examples/demo.sh .ci/run
	$(PY) -m pytest tests/test_house.py

fix: setup ## mend what ruff can mend
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: setup ## measure against a baseline run beside it
	$(PY) bench/launch.py
	$(PY) bench/proof.py
	$(PY) bench/seals.py
	$(PY) bench/lint.py
	$(PY) bench/search.py
	$(PY) bench/loop.py
	$(PY) bench/filesystem.py
	$(PY) bench/append.py
	$(PY) bench/stores.py

test-agents: setup ## install real agent CLIs in a throw-away place, and take a mission to DONE with each (npm, PyPI; root: apt)
	@command -v socat > /dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -yqq socat; } || { echo "claude starts a sandbox of its own only where socat is installed: apt install socat"; exit 69; }
	@place=$$(mktemp -d -p "$(CURDIR)" .agents.XXXXXX); trap 'rm -rf "$$place"' EXIT; HARNESS_REAL_AGENTS="$$place" $(PY) -m pytest -v tests/agents/test_real.py tests/builtin

test-peers: ## run the test suites of langgraph, langchain and pydantic-ai over our interfaces, in .venv-peers (PyPI)
	@$(MAKE) --no-print-directory setup VENV=.venv-peers EXTRAS="$(EXTRAS) peers"
	@HARNESS_TORTURE=1 .venv-peers/bin/python -m pytest -rs -p no:asyncio tests/peers

torture: setup ## kills, failing calls, power cuts, rivals, planted bugs: one table, in 25 minutes (FULL=1: every point, no bound)
	@$(PY) -m tests.torture $(if $(FULL),--full)

clean: ## remove what setup and tests made
	rm -rf $(VENV) .venv-3.* .venv-peers .bash-3.2 .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
