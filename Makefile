# Two commands for a machine with Python 3.11 and make: `make demo` and `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Tests compile for speed of compilation, into a cache of their own: numba does not tell kernels
# compiled with other settings apart.  `make thorough` compiles as users do.
QUICKLY := NUMBA_OPT=1 NUMBA_LOOP_VECTORIZE=0 NUMBA_SLP_VECTORIZE=0 NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/kernels
# One more than cores: some tests wait for a process that was killed, or for a deadline.
PYTEST := $(BIN)/pytest -n $(shell expr $$(nproc 2>/dev/null || echo 2) + 1)

.PHONY: demo test thorough explore docs bench dist clean

demo: $(VENV)/.installed
	$(BIN)/sightline reproduce --profile quick --out demo

test: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(QUICKLY) $(PYTEST) -m "not thorough"
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m "not slow" --ignore tests/attacks --ignore tests/experiments

# Compiled as well: every policy in every setting, and all formulas.  Before a release, and after a
# change of what kernels are made of.
thorough: $(VENV)/.installed-dev
	$(BIN)/pytest -n auto -m thorough

# Property tests on examples never drawn before; what fails becomes an @example.
explore: $(VENV)/.installed-dev
	HYPOTHESIS_PROFILE=explore $(BIN)/pytest -n auto

docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

bench: $(VENV)/.installed-dev
	$(BIN)/sightline bench
	$(BIN)/python -m benchmarks.projection
	$(BIN)/python -m benchmarks.experiments

# Everything that a release publishes, built and tried; about an hour, most of it for the kernels of
# all policies.  DIST="--policies ids stakes" builds fewer of them.
dist: $(VENV)/.installed-dev
	$(INSTALL) -e '.[release]'
	$(BIN)/python -m release.dist $(DIST)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e .
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[dev]'
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
