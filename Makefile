# make test: set up and run the tests; make demo: set up and see the method work.
# Everything is installed into .venv; no other step is needed after a clone.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKDIR ?= workdir/demo

.PHONY: help test test-all torture lint demo docs bench clean

help:
	@echo "make test      lint, type check and the tests (minutes on 2 cores)"
	@echo "make demo      train a small backbone on built-in images, then evaluate RDC"
	@echo "make test-all  the slow tests too"
	@echo "make docs      the documentation as a site, in site/index.html"
	@echo "make torture   kills, damage and hostile input by the thousand (ten minutes)"
	@echo "make bench     speed beside NumPy and Pillow (benchmarks/train.py: PyTorch)"

# torch is optional: its parity tests are skipped where it is not installed.
# EXTRA_PIP names further packages, e.g. EXTRA_PIP=torch==2.13.0; LOCK a file of
# versions to keep to.
$(VENV)/.installed: setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]" $(EXTRA_PIP) \
	    $(if $(LOCK),--constraint $(LOCK))
	touch $@

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile

test-all: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

# docs/reliability.md; KILLS in total, DAMAGES a kind of file, CASES a property.
KILLS ?= 54
DAMAGES ?= 200
CASES ?= 550
torture: $(VENV)/.installed
	RDC_JAX_KILLS=$(KILLS) RDC_JAX_DAMAGES=$(DAMAGES) RDC_JAX_CASES=$(CASES) \
	    $(BIN)/python -m pytest tests/torture

demo: $(VENV)/.installed
	$(BIN)/python run_eval.py --workdir=$(WORKDIR)

# Warnings are errors: dead links and anchors, names that are gone.
docs: $(VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/transforms.py

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache
