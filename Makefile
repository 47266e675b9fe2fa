# make test: set up and run the tests; make demo: set up and see the method work.
# Everything is installed into .venv; no other step is needed after a clone.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKDIR ?= workdir/demo

.PHONY: help test test-all lint demo bench clean

help:
	@echo "make test      lint, type check and the tests (minutes on 2 cores)"
	@echo "make demo      train a small backbone on built-in images, then evaluate RDC"
	@echo "make test-all  the slow tests too"
	@echo "make bench     speed beside NumPy and Pillow (benchmarks/train.py: PyTorch)"

# torch is optional: its parity tests are skipped where it is not installed.
# EXTRA_PIP names further packages, e.g. EXTRA_PIP=torch==2.13.0
$(VENV)/.installed: setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]" $(EXTRA_PIP)
	touch $@

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile

test-all: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

demo: $(VENV)/.installed
	$(BIN)/python run_eval.py --workdir=$(WORKDIR)

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/transforms.py

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache
