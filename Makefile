# Everything a new machine with Python 3.11 to 3.13, pip and venv needs. `make demo` and `make test` set up by themselves.

PYTHON ?= $(firstword $(shell command -v python3.11 python3) python3)
VENV := .venv
BIN := $(VENV)/bin
# Two stamps: what runs the product, and what tests need besides.
STAMP := $(VENV)/.ready
TEST_STAMP := $(VENV)/.ready-for-tests
# ReFrame brings polars, whose threads do not live through a fork: it has an environment of its own.
PEERS := $(VENV)/peers
PIP = $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable
# Skipped tests are named at the end. What was compiled is kept for the next process (hundreds are started), and each has
# one thread: two workers are two cores.
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(or $(WORKERS),2) --dist loadgroup --no-loadscope-reorder -rs

.PHONY: help setup setup-tests demo up test suite test-quick test-all lint bench chaos fuzz docs site lock sbom clean

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "%-12s %s\n", $$1, $$2}'

setup: $(STAMP) ## virtual environment with everything that the product needs in .venv

setup-tests: $(TEST_STAMP) ## the same with what tests, linters and clusters need

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))" || { echo "make: $(PYTHON) is not Python 3.11 to 3.13: name one with PYTHON=..." >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) '.[all]'
	touch $(STAMP)

$(TEST_STAMP): $(STAMP)
	$(PIP) '.[dev]'
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --constraint constraints.txt reframe-hpc
	touch $(TEST_STAMP)

demo: setup ## simulate a fleet and run the whole pipeline on it
	$(BIN)/perf-assets demo

up: setup ## open the Dagster and MLflow pages
	$(BIN)/perf-assets up

# Linters beside the tests: these do not always have something for both cores.
test: setup-tests ## linters, type checker, all tests
	+$(MAKE) --no-print-directory -j 2 lint suite

# A worker more than cores: tests of running services wait for sensors and queues half of their time.
suite: setup-tests
	$(PYTEST) -n $(or $(WORKERS),3) --durations=20 -m "not long"

# At every save: no services, no databases, nothing that trains for long.
test-quick: setup-tests ## what to run at every save
	$(PYTEST) -m "not integration and not slow and not long"

# All, and what takes long: eight processes on a new home twenty times, mutated files, faults by chance, the whole demo.
test-all: test fuzz ## all tests, and what takes long
	$(PYTEST) -m long
	PERF_ASSETS_OPENING_ROUNDS=20 PERF_ASSETS_OPENING_PROCESSES=8 PERF_ASSETS_KILL_POINTS=40 \
		$(PYTEST) tests/integration/test_first_opening.py tests/storage/test_killed.py
	PERF_ASSETS_INSTALL=1 $(PYTEST) tests/registry/test_requirements.py
	$(BIN)/python -m chaos --minutes 3
	rm -rf build/demo && mkdir -p build/demo/dagster_home && cp dagster_home/dagster.yaml build/demo/dagster_home
	PERF_ASSETS_LAKE=$(CURDIR)/build/demo/data_lake DAGSTER_HOME=$(CURDIR)/build/demo/dagster_home $(BIN)/perf-assets demo

lint: setup-tests ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup-tests ## all benchmarks
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

chaos: setup-tests ## random faults for a quarter of an hour (MINUTES=, SEED=)
	$(BIN)/python -m chaos --minutes $(or $(MINUTES),15) $(if $(SEED),--seed $(SEED))

fuzz: setup-tests ## mutated files and random job traces
	PERF_ASSETS_FUZZ_EXAMPLES=20000 $(BIN)/python -m pytest -n 2 tests/readers/test_fuzz.py tests/scheduling/test_reference.py

docs: setup ## write the generated pages of docs/
	$(BIN)/perf-assets vocabulary > docs/tables.md
	$(BIN)/perf-assets manual > docs/cli.md

# Packages of the site stay out of .venv: only who builds it needs them.
site: ## the documentation as a site with search, in build/site
	test -x build/docs-venv/bin/mkdocs || { $(PYTHON) -m venv build/docs-venv && build/docs-venv/bin/python -m pip install --quiet --constraint constraints.txt '.[docs]'; }
	NO_MKDOCS_2_WARNING=1 build/docs-venv/bin/mkdocs build --quiet --site-dir build/site

lock: setup ## requirements.lock: exact versions with hashes of what 'make setup' installs
	$(BIN)/python deploy/lock.py

sbom: setup ## build/sbom.json: a software bill of materials of .venv (CycloneDX)
	test -x build/sbom-venv/bin/cyclonedx-py || { $(PYTHON) -m venv build/sbom-venv && build/sbom-venv/bin/python -m pip install --quiet cyclonedx-bom; }
	build/sbom-venv/bin/cyclonedx-py environment --output-format JSON --output-file build/sbom.json $(BIN)/python

clean: ## remove .venv and caches
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
