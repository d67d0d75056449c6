# What a contributor or a checker types. Needs only make and Python 3.11 or newer.
#
#   make setup             make .venv (seconds when nothing changed)
#   make up ARGS="..."     run the whole service in the foreground
#   make test ARGS="..."   run the whole test suite
#   make check             lint, format, types, import contracts, sizes
#   make test-containers   run the suite against servers in containers (needs Docker)

SHELL := /bin/bash
.DEFAULT_GOAL := setup

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
ARGS ?=
PROBE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(firstword $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c '$(PROBE)' >/dev/null 2>&1 && echo "$$p" && break; done))

.PHONY: setup up test check format test-containers lock

setup: $(STAMP)

$(STAMP): requirements.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "Undivided needs Python 3.11 or newer with venv; set PYTHON=..." >&2; exit 3; }
	@test -x $(BIN)/python && $(BIN)/python -c '' 2>/dev/null || { rm -rf $(VENV) && $(PYTHON) -m venv $(VENV); }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
	@touch $@

up: setup
	@exec $(BIN)/undivided up $(ARGS)

test: setup
	@$(BIN)/python -m pytest $(ARGS)

CONTAINERS := docker compose --project-name undivided-tests --file tests/support/compose.yaml

# One process, for all its tests are guests of one cluster: a transaction that one of them holds
# open holds back every reader of the log there.
test-containers: setup
	@command -v docker >/dev/null || { echo "make test-containers needs Docker" >&2; exit 3; }
	@$(CONTAINERS) up --detach --wait
	@UNDIVIDED_TEST_DATABASE_URL=postgresql://postgres:owner@127.0.0.1:15432/postgres \
		UNDIVIDED_TEST_REDIS_URL=redis://127.0.0.1:16379/0 \
		$(BIN)/python -m pytest -n 0 $(ARGS); code=$$?; $(CONTAINERS) down --volumes; exit $$code

check: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python scripts/sizes.py
	@$(BIN)/python scripts/events_catalogue.py --check

format: setup
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# Only for whoever changes the dependencies in pyproject.toml; needs uv.
lock:
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
		--no-header --no-emit-index-url --no-emit-find-links --quiet --output-file requirements.txt
