# make test: set up and run the tests; make demo: set up and see the method work.
# Everything is installed into .venv; no other step is needed after a clone.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKDIR ?= workdir/demo

.PHONY: help test test-slow test-all test-core test-wheel test-random nightly torture lint demo \
    docs bench clean

help:
	@echo "make test         lint, type check and the fast tests (minutes on 2 cores)"
	@echo "make demo         train a small backbone on built-in images, then evaluate RDC"
	@echo "make test-slow    the other tests: browser, site, notebooks, damage, torch, …"
	@echo "make test-all     both"
	@echo "make test-core    the kernels' tests alone"
	@echo "make test-wheel   the wheel, alone in an environment of its own"
	@echo "make test-random  the fast tests in a random order"
	@echo "make nightly      new random cases for the tests of properties"
	@echo "make torture      kills, damage and hostile input by the thousand (ten minutes)"
	@echo "make docs         the documentation as a site, in site/index.html"
	@echo "make bench        speed beside NumPy and Pillow (benchmarks/train.py: PyTorch)"

# torch, transformers, timm and EfficientNet are optional: the tests that compare with
# them are skipped where they are not installed. EXTRA_PIP names such packages, e.g.
# EXTRA_PIP=torch==2.13.0; NO_DEPS those to install without what they ask for (timm asks
# for torchvision, which need not fit this torch); LOCK a file of versions to keep to.
$(VENV)/.installed: setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]" $(EXTRA_PIP) \
	    $(if $(LOCK),--constraint $(LOCK))
	$(if $(NO_DEPS),$(BIN)/python -m pip install --quiet --no-deps $(NO_DEPS))
	touch $@

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

PYTEST = $(BIN)/python -m pytest
# A file's tests share what they make; the files go in the order of tests/conftest.py.
WORKERS = -n 2 --dist loadfile --no-loadscope-reorder
# What draws cases or an order anew; a seed that is given repeats them.
SEED ?= $(shell date +%s)
SEED := $(SEED)

test: lint
	$(PYTEST) -m "not slow" $(WORKERS)
	@echo "slow tests: make test-slow; new random cases: make nightly;" \
	    "kills and damage: make torture; another order: make test-random"

test-slow: $(VENV)/.installed
	$(PYTEST) -m slow $(WORKERS)

test-all: lint
	$(PYTEST) $(WORKERS)

# With XLA_FLAGS=--xla_cpu_max_isa=AVX2, for instance, as on an older processor.
test-core: $(VENV)/.installed
	$(PYTEST) tests/core

# What users get: a wheel made from the sdist. Its tests lie beside no package.
WHEEL := build/wheel
test-wheel: $(VENV)/.installed
	rm -rf $(WHEEL)
	$(BIN)/python -m build --outdir $(WHEEL) > /dev/null
	$(PYTHON) -m venv $(WHEEL)/venv
	$(WHEEL)/venv/bin/python -m pip install --quiet beartype hypothesis pytest \
	    "$$(ls $(WHEEL)/*.whl)[report]" $(if $(LOCK),--constraint $(LOCK))
	mkdir $(WHEEL)/alone
	cp -r tests setup.cfg $(WHEEL)/alone
	cd $(WHEEL)/alone && ../venv/bin/python -m pytest tests/core tests/test_installed.py

test-random: $(VENV)/.installed
	@echo "the same order again: make test-random SEED=$(SEED)"
	$(PYTEST) -m "not slow" $(WORKERS) -p randomly --randomly-seed=$(SEED)

# Cases of each property. What fails is kept in .hypothesis and tried first next time.
CASES ?= 550
nightly: $(VENV)/.installed
	@echo "the same cases again: make nightly SEED=$(SEED)"
	RDC_JAX_TORTURE_SEED=$(SEED) RDC_JAX_CASES=$(CASES) $(PYTEST) tests \
	    -m hypothesis --hypothesis-profile=nightly --hypothesis-seed=$(SEED) \
	    $(WORKERS)

# docs/reliability.md; KILLS in total, DAMAGES a kind of file, CASES a property.
KILLS ?= 54
DAMAGES ?= 200
torture: $(VENV)/.installed
	@echo "the same kills, damages and cases again: make torture SEED=$(SEED)"
	RDC_JAX_TORTURE_SEED=$(SEED) RDC_JAX_KILLS=$(KILLS) RDC_JAX_DAMAGES=$(DAMAGES) \
	    RDC_JAX_CASES=$(CASES) $(PYTEST) tests/torture --hypothesis-profile=nightly

demo: $(VENV)/.installed
	$(BIN)/python run_eval.py --workdir=$(WORKDIR)

# Warnings are errors: dead links and anchors, names that are gone.
docs: $(VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/transforms.py

clean:
	rm -rf $(VENV) .cache build *.egg-info .pytest_cache .mypy_cache .ruff_cache
