.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
# Empty files that remember an install; a change of pyproject.toml makes them old.
STAMPS := $(VENV)/stamps
INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check
PYTEST := $(PY) -m pytest
# make test ARGS="-k fence -x"
ARGS ?=

.PHONY: help
help: ## Show this list
	@echo "django-helisched: make TARGET"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(STAMPS)/demo ## Run the example: web server and scheduler on SQLite (DEMO_SECONDS=20 stops by itself)
	@$(PY) example_project/demo.py

.PHONY: test
test: $(STAMPS)/test ## Run the tests on SQLite; no service is needed
	@echo "test: SQLite, $$($(PY) --version); other databases: make test-postgres, make test-mariadb"
	@HELISCHED_TEST_DB=sqlite $(PYTEST) $(ARGS)

.PHONY: test-postgres
test-postgres: $(STAMPS)/postgres ## Run the tests on PostgreSQL (HELISCHED_TEST_POSTGRES_HOST, _PORT, _USER, _PASSWORD)
	@HELISCHED_TEST_DB=postgres $(PYTEST) $(ARGS)

.PHONY: test-mariadb
test-mariadb: $(STAMPS)/mysql ## Run the tests on MariaDB (HELISCHED_TEST_MARIADB_..., and the client library's headers)
	@HELISCHED_TEST_DB=mariadb $(PYTEST) $(ARGS)

# What a chaos run works on and how long; CHAOS_SEED=n draws the same again.
CHAOS_DB ?= postgres
CHAOS_SECONDS ?= 60
CHAOS_STAMP = $(or $(CHAOS_STAMP_$(CHAOS_DB)),$(error CHAOS_DB is postgres, mariadb or sqlite))
CHAOS_STAMP_postgres := postgres
CHAOS_STAMP_mariadb := mysql
CHAOS_STAMP_sqlite := test

.PHONY: chaos
chaos: chaos-tools ## Kill, stop and restart a fleet, then count everything (CHAOS_DB=mariadb CHAOS_SECONDS=600)
	@CHAOS_DB=$(CHAOS_DB) CHAOS_SECONDS=$(CHAOS_SECONDS) $(PY) -m tests.chaos

.PHONY: chaos-tools
chaos-tools:
	@$(MAKE) --no-print-directory $(STAMPS)/$(CHAOS_STAMP)

.PHONY: failover
failover: $(STAMPS)/postgres ## Fail a PostgreSQL primary over to its replica, and restart a server, under a working fleet
	@$(PY) -m tests.chaos.failover

.PHONY: soak-model
soak-model: $(STAMPS)/test ## Compare the stores with the memory store at length (HELISCHED_SOAK=2000 examples)
	@HELISCHED_SOAK=$(or $(HELISCHED_SOAK),2000) $(PYTEST) tests/contract -k "model" $(ARGS)

.PHONY: bench
bench: $(STAMPS)/venv ## Measure us, our peers and plain SQL (BENCH_PEERS, BENCH_CASES, BENCH_DATABASES, BENCH_ROUNDS, BENCH_QUICK=1)
	@$(PY) -m benchmarks speed $(ARGS)

.PHONY: bench-growth
bench-growth: $(STAMPS)/venv ## Measure claims among millions of rows that do not concern them (BENCH_ROWS, BENCH_ROUNDS, BENCH_QUICK=1)
	@$(PY) -m benchmarks growth $(ARGS)

.PHONY: mutants
mutants: $(STAMPS)/postgres $(STAMPS)/mysql ## Break the package on purpose, in one way after another: a test must fail each time
	@$(PYTEST) tests/mutants/every_mutant.py $(ARGS)

.PHONY: check
check: lint types rooms migrations ## Check style, types, rooms and migrations (make -k check goes on after a failure)

.PHONY: lint
lint: $(STAMPS)/dev
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check

.PHONY: types
types: $(STAMPS)/dev
	$(VENV)/bin/mypy

.PHONY: rooms
rooms: $(STAMPS)/dev
	$(VENV)/bin/lint-imports

.PHONY: migrations
migrations: $(STAMPS)/dev
	HELISCHED_TEST_NAME=$(VENV)/migrations.sqlite3 $(PY) -m django makemigrations --check --dry-run --settings tests.settings

.PHONY: matrix
matrix: $(STAMPS)/dev ## Run the tests on every Python, Django and database of tox.ini (ARGS="-e NAME")
	@.ci/matrix $(ARGS)

.PHONY: clean
clean: ## Remove the environments, caches and builds
	rm -rf $(VENV) .bench .tox .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: $(PYTHON) is older than Python 3.11; say which one to use: make PYTHON=python3.12"; exit 1; }
	@echo "venv: making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@# pip 25.1 is the first that reads dependency groups.
	@$(INSTALL) --upgrade 'pip>=25.1'
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/demo: pyproject.toml | $(STAMPS)/venv
	@echo "install: the package and what the example needs into $(VENV)"
	@$(INSTALL) --editable . --group example
	@touch $@

$(STAMPS)/test: pyproject.toml | $(STAMPS)/venv
	@echo "install: the package and its test tools into $(VENV)"
	@$(INSTALL) --editable . --group test
	@touch $@

$(STAMPS)/dev: pyproject.toml | $(STAMPS)/venv
	@echo "install: the package and its development tools into $(VENV)"
	@$(INSTALL) --editable . --group dev
	@touch $@ $(STAMPS)/test $(STAMPS)/demo

$(STAMPS)/postgres $(STAMPS)/mysql: $(STAMPS)/%: $(STAMPS)/test
	@echo "install: the driver of the extra [$*]"
	@$(INSTALL) --editable '.[$*]'
	@touch $@
