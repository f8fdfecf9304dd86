# One command runs Throughline, one tests it; both set up what they need and are instant the second time.

# What is tested with Node: each has a package-lock.json, and a script `test`.
NODE_PACKAGES := clients/typescript

.DEFAULT_GOAL := help
.PHONY: help setup run demo live test test-all test-processes test-web test-page ui pictures coverage check format lock openapi docs clean \
	check-python check-style check-format check-types check-layers check-openapi $(NODE_PACKAGES:%=test-node-of-%)

# Where the environment forbids it, every process would compile the whole service, and every run all tests.
unexport PYTHONDONTWRITEBYTECODE

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
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(FOR_RUN) ## Create .venv and install the locked dependencies

run: $(FOR_RUN) ## Start everything: PostgreSQL, Valkey, migrations, API, worker
	@$(BIN)/python -m app.cli run

# YES=1 does not ask before it spends.
live: $(FOR_TEST) ## Try your own model, a few cents: a talk, a compaction, a verification, a cache; tells the cost first
	@YES=$(YES) $(BIN)/python -m bench.live

demo: $(FOR_RUN) ## Play a long conversation and watch it being compacted
	@$(BIN)/python -m app.cli demo

# Test modules are dealt out to this many processes: one more than two cores, since some tests wait.
WORKERS := 3
# How many examples a property is tried with: see tests/profiles.py.
PROFILE := ci
PYTEST = HYPOTHESIS_PROFILE=$(PROFILE) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# SEED=7 shuffles, SEED=random by the second of the start; the seed is printed.
SEED_OF_RUN := $(if $(filter random,$(SEED)),$(shell date +%s),$(SEED))
SHUFFLE = $(if $(SEED_OF_RUN),-p randomly --randomly-seed=$(SEED_OF_RUN))

test: $(FOR_TEST) ## Run the tests but the long ones; ARGS="-k name" chooses, SEED=random shuffles
	@$(if $(SEED_OF_RUN),echo "Shuffled: make test SEED=$(SEED_OF_RUN) plays the same order again.")
	@$(PYTEST) -m "not long" $(SHUFFLE) $(ARGS)

test-all: PROFILE := long
test-all: $(FOR_TEST) ## Run every test: the long ones too, large examples, the service over processes
	@$(PYTEST) $(ARGS)
	@$(MAKE) --no-print-directory test-processes TESTS=tests/acceptance
	@$(MAKE) --no-print-directory test-web

test-processes: WORKERS := 2
# LIMIT=600 leaves out, by name, what would begin after so many seconds.
test-processes: $(FOR_TEST) ## Run the service over processes of its own, those that kill them first, and long tests on real servers
	@$(PYTEST) $(or $(TESTS),tests) --transport process $(if $(LIMIT),--limit $(LIMIT)) $(ARGS)

test-web: test-page ## Test the TypeScript client and the page, with Node 20 or newer; without npm, or its registry, this is skipped, and said
	@if ! command -v npm > /dev/null; then echo "make test-web: skipped, for there is no npm here."; \
		elif ! $(MAKE) --no-print-directory $(NODE_PACKAGES:%=%/node_modules/.package-lock.json); then \
			echo "make test-web: skipped, for the packages cannot be installed here: see above."; \
		else $(MAKE) --no-print-directory $(NODE_PACKAGES:%=test-node-of-%); fi

$(NODE_PACKAGES:%=test-node-of-%): test-node-of-%: %/node_modules/.package-lock.json
	@cd $* && npm test --silent

%/node_modules/.package-lock.json: %/package-lock.json
	@cd $* && npm ci --loglevel=error --no-audit --no-fund
	@touch $@

# What drives the browser is installed here; a browser is Debian's chromium, or the one that CHROMIUM names.
test-page: $(FOR_TEST) ## Drive the page in Chromium; without npm or a browser this is skipped, and said
	@if command -v npm > /dev/null && (cd web && npm ci --silent); then :; else \
		echo "make test-page: what drives the browser cannot be installed here."; fi
	@$(BIN)/python -m pytest -m long tests/acceptance/test_page.py tests/acceptance/test_page_server.py $(ARGS)

ui: $(FOR_TEST) ## Build the page from web/ into app/ui/ui.zip (needs Node 20 or newer)
	@cd web && npm ci --silent && NEXT_TELEMETRY_DISABLED=1 npm run --silent build
	@$(BIN)/python web/scripts/pack.py

pictures: $(FOR_TEST) ## Take the pictures of the page in docs/ anew, in Chromium; without npm or a browser this is skipped, and said
	@if ! command -v npm > /dev/null; then echo "make pictures: skipped, for there is no npm here."; \
		elif ! (cd web && npm ci --silent); then echo "make pictures: skipped, for the packages cannot be installed here: see above."; \
		else $(BIN)/python -m bench.pictures; fi

coverage: $(FOR_TEST) ## Run the tests and show which branches of the code they take
	@$(PYTEST) -m "not long" --cov --cov-branch --cov-report=term:skip-covered $(ARGS)

check: $(FOR_TEST) ## Check style, types, layers and openapi.json, side by side
	@$(MAKE) --no-print-directory -j2 --output-sync=target check-types check-style check-format check-layers check-openapi

check-style:
	@$(BIN)/ruff check .

check-format:
	@$(BIN)/ruff format --check .

check-types:
	@$(BIN)/mypy

check-layers:
	@$(BIN)/lint-imports

check-openapi:
	@$(BIN)/python -m app.http.openapi /dev/stdout | diff -u openapi.json - || \
		(echo "openapi.json is not what the code says: run 'make openapi' and commit it."; exit 1)

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
	@$(EXPORT) --only-group docs -o requirements-docs.lock
	@rm uv.lock

openapi: $(FOR_TEST) ## Write openapi.json from the code, and from that the types of the TypeScript client (with npm)
	@$(BIN)/python -m app.http.openapi
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory clients/typescript/src/schema.d.ts; \
		else echo "clients/typescript/src/schema.d.ts is not made anew, for there is no npm here."; fi

clients/typescript/src/schema.d.ts: openapi.json clients/typescript/node_modules/.package-lock.json
	@cd clients/typescript && npm run --silent schema

# The tools of the site stand apart from those that run and test: build/docs has an environment of its own.
docs: build/docs/.installed ## Build the pages of docs/ as a site into build/site; a link that leads nowhere is an error
	@build/docs/bin/python -m mkdocs build --strict

build/docs/.installed: requirements-docs.lock | check-python
	@$(FOUND) -m venv build/docs
	@build/docs/bin/python -m pip --disable-pip-version-check -qq install --no-deps --require-hashes -r requirements-docs.lock
	@touch $@

clean: ## Remove the environment and the caches; the data stays
	@rm -rf $(NODE_PACKAGES:%=%/node_modules) $(NODE_PACKAGES:%=%/dist)
	@rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -not -path './.data/*' -prune -exec rm -rf {} +

check-python:
	@$(if $(FOUND),,$(error $(TOO_OLD)))

$(CREATED): | check-python
	@echo "Setting up $(VENV): half a minute to two minutes, once."
	@$(FOUND) -m venv $(VENV)
	@touch $@

$(FOR_RUN): requirements.lock pyproject.toml $(CREATED)
	@$(PIP) install --no-deps --require-hashes -r requirements.lock
	@$(INSTALL_PROJECT)
	@touch $@

# What the tests need contains what running needs.
$(FOR_TEST): requirements-dev.lock pyproject.toml $(CREATED)
	@$(PIP) install --no-deps --require-hashes -r requirements-dev.lock
	@$(INSTALL_PROJECT)
	@touch $(FOR_RUN) $@
