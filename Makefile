# One command runs Throughline, one tests it; both set up what they need and are instant the second time.

.DEFAULT_GOAL := help
.PHONY: help setup run demo test lint format lock openapi clean check-python

VENV := .venv
BIN := $(VENV)/bin
# Stamps: what is installed is as new as the lock files that are older than these.
CREATED := $(VENV)/.created
FOR_RUN := $(VENV)/.installed-for-run
FOR_TEST := $(VENV)/.installed-for-test

# The first interpreter that truly starts, is new enough and can make environments.
# PYTHON=/path/to/python chooses another.
NEW_ENOUGH := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
CANDIDATES = $(or $(PYTHON),$(and $(wildcard $(CREATED)),$(BIN)/python) python3.13 python3.12 python3.11 python3)
FOUND = $(shell for each in $(CANDIDATES); do "$$each" -c '$(NEW_ENOUGH)' 2>/dev/null && echo "$$each" && break; done)
TOO_OLD = Throughline needs Python 3.11 or newer with its venv module, and found none among: $(strip $(CANDIDATES)). \
	Install one, or name it with PYTHON=/path/to/python

PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
# The build backend is locked with the rest: installing the checkout itself asks nobody.
INSTALL_PROJECT = $(PIP) install --no-index --no-deps --no-build-isolation -e .

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(FOR_RUN) ## Create .venv and install the locked dependencies

run: $(FOR_RUN) ## Start everything: PostgreSQL, Valkey, migrations, API, worker
	@$(BIN)/python -m app.cli run

demo: $(FOR_RUN) ## Play a long conversation and watch it being compacted
	@$(BIN)/python -m app.cli demo

test: $(FOR_TEST) ## Run every test; ARGS="-k name" chooses
	@$(BIN)/python -m pytest $(ARGS)

lint: $(FOR_TEST) ## Check style, types and layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(FOR_TEST) ## Rewrite the code in the common style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# uv.lock names package hosts, so it is made, exported and thrown away.
EXPORT := uv export --frozen --no-emit-project --no-emit-index-url --no-header -q
lock: ## Make the lock files anew from pyproject.toml (needs uv)
	@uv lock -q
	@$(EXPORT) --no-dev --group build -o requirements.lock
	@$(EXPORT) -o requirements-dev.lock
	@$(EXPORT) --group bench -o requirements-bench.lock
	@rm uv.lock

openapi: $(FOR_TEST) ## Write openapi.json from the code
	@$(BIN)/python -m app.openapi

clean: ## Remove the environment and the caches; the data stays
	@rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -not -path './.data/*' -prune -exec rm -rf {} +

check-python:
	@$(if $(FOUND),,$(error $(TOO_OLD)))

$(CREATED): | check-python
	@echo "Setting up $(VENV): about half a minute, once."
	@$(FOUND) -m venv $(VENV)
	@touch $@

$(FOR_RUN): requirements.lock pyproject.toml $(CREATED)
	@$(PIP) install --require-hashes -r requirements.lock
	@$(INSTALL_PROJECT)
	@touch $@

# What the tests need contains what running needs.
$(FOR_TEST): requirements-dev.lock pyproject.toml $(CREATED)
	@$(PIP) install --require-hashes -r requirements-dev.lock
	@$(INSTALL_PROJECT)
	@touch $(FOR_RUN) $@
