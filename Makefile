# Every target sets up what it needs by itself; a second call installs nothing. `make help` lists the targets.
VENV := .venv
PY := $(VENV)/bin/python
RELAB := $(VENV)/bin/relab
STAMP := $(VENV)/.installed
PEER_VENV := .venv-sb3
PEER_STAMP := $(PEER_VENV)/.installed
JAX_VENV := .venv-rejax
JAX_STAMP := $(JAX_VENV)/.installed
SITE_VENV := .venv-docs
SITE_STAMP := $(SITE_VENV)/.installed
DEMO := experiments
BENCHMARKS := startup record tfevents cartpole_race steady small_batches replay_methods overhead callback queue engines two_runs
SECONDS ?= 60# of fuzzing for each format
KILLS ?= 1000# of runs by `make test-kill`
WORKERS ?= 3# processes for pytest, one more than two cores, since some tests wait; 0: none beside the main one
PYTEST_ARGS ?=# further arguments for pytest

# The first of these that is Python 3.11 or newer makes the venvs.
PYTHON ?= python3.11 python3

# One thread per test process: on few cores more threads make small tests slower. Numba may go up to 2, because relab
# asks for 1 by itself, and the tests that compare 1 thread with 2 would compare 1 with 1 under a lower limit.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=2
# Modules are compiled once, even where PYTHONDONTWRITEBYTECODE is set (as containers have it): without that each process
# that the tests start would compile relab anew.
BYTECODE := PYTHONDONTWRITEBYTECODE=
# Work stealing: each process begins with tests that stand together and share what a file sets up; who is done first
# takes over some of the others', so that none waits at the end.
PYTEST := $(ONE_THREAD) $(BYTECODE) $(PY) -m pytest $(if $(filter-out 0,$(WORKERS)),-n $(WORKERS) --dist worksteal) $(PYTEST_ARGS)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-all test-cluster test-kill fuzz check format bench bench-peers docs site dist clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do \
	    printf '  make %-12s %s\n' "$$name" "$$text"; done

setup: $(STAMP)  ## create .venv and install relab with its pinned packages (all other targets do this too)

demo: $(STAMP)  ## a question, 10 runs of PPO on CartPole, an answer, the fault found, a report; under 90 s once compiled
	$(RELAB) experiment examples/demo.yaml --yes --root $(DEMO)
	@command -v relab >/dev/null || echo 'relab is not on your PATH yet: call `. $(VENV)/bin/activate` first, or write $(RELAB)'

test: $(STAMP)  ## the tests, without the slow ones
	$(PYTEST)

test-all: $(STAMP)  ## all tests, the slow ones too
	$(PYTEST) -m "not cluster" --hypothesis-profile=search

test-cluster: $(STAMP)  ## a real Ray cluster and a real Slurm on this machine, nodes killed, runs compared with those made here
	$(PY) -m pip install --quiet -c constraints.txt 'ray>=2.60,<3'
	$(ONE_THREAD) $(BYTECODE) $(PY) -m pytest -s -m cluster tests/cluster

test-kill: $(STAMP)  ## kill runs of everything KILLS=1000 times, resume them, compare all bytes; the table goes to docs/reliability.md
	$(ONE_THREAD) $(PY) tests/kill/kill_driver.py $(KILLS) --write

fuzz: $(STAMP)  ## search for bytes that break an importer, SECONDS=60 for each format; needs atheris in .venv
	@$(PY) -c 'import atheris' 2>/dev/null || { echo "skipped: atheris is not installed ($(PY) -m pip install atheris)"; exit 0; }; \
	set -e; for name in $$($(PY) -c 'from relab.formats.read.find import FORMATS; print(*FORMATS)'); do \
	    echo "== $$name"; $(ONE_THREAD) $(PY) tests/formats/fuzz/fuzz_importers.py $$name $(SECONDS); done

check: $(STAMP)  ## ruff (lint and format) and mypy
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format: $(STAMP)  ## let ruff rewrite what `make check` would complain about
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: $(STAMP) $(PEER_STAMP) $(JAX_STAMP)  ## all benchmarks, into benchmarks/results/*.json
	@set -e; for name in $(BENCHMARKS); do echo "== benchmarks/$$name.py"; $(PY) -m benchmarks.$$name; done

bench-peers: $(PEER_STAMP) $(JAX_STAMP)  ## create .venv-sb3 and .venv-rejax with the libraries that relab is measured against

docs: $(STAMP)  ## write the generated pages (docs/config.md, metrics.md, health.md, modules.md ...) anew
	$(PY) docs/generate.py

site: $(SITE_STAMP)  ## the pages of docs/ as a site, every link checked, into build/site
	NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/python -m mkdocs build
	@echo build/site/index.html

dist: $(STAMP)  ## wheel and source archive, into dist/
	$(PY) -m build --outdir dist .

clean:  ## remove the venvs and all caches; runs/ stays
	rm -rf $(VENV) $(PEER_VENV) $(JAX_VENV) $(SITE_VENV) build dist .pytest_cache .mypy_cache .ruff_cache
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

# $(call make_venv,FOLDER): a venv with a working pip; one that was left half-made is completed.
define make_venv
	@if ! $(1)/bin/python -m pip --version >/dev/null 2>&1; then \
	    found=; for candidate in $(PYTHON); do \
	        if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$candidate; break; fi; \
	    done; \
	    if [ -z "$$found" ]; then \
	        echo "relab needs Python 3.11 or newer, but none of these is: $(PYTHON). Install one, or name it: make PYTHON=/path/to/python3.11" >&2; \
	        exit 1; \
	    fi; \
	    echo "creating $(1) with $$found ($$($$found --version))"; \
	    $$found -m venv $(1); \
	fi
endef

$(STAMP): pyproject.toml constraints.txt
	$(call make_venv,$(VENV))
	$(PY) -m pip install --quiet -c constraints.txt -e '.[train,mujoco,mcp,dev]'
	@touch $@

$(PEER_STAMP): benchmarks/peers/requirements.txt
	$(call make_venv,$(PEER_VENV))
	$(PEER_VENV)/bin/python -m pip install --quiet -c constraints.txt -r $< -e .
	@touch $@

$(JAX_STAMP): benchmarks/peers/requirements-rejax.txt
	$(call make_venv,$(JAX_VENV))
	$(JAX_VENV)/bin/python -m pip install --quiet -r $<
	@touch $@

$(SITE_STAMP): pyproject.toml constraints.txt docs/constraints.txt
	$(call make_venv,$(SITE_VENV))
	$(SITE_VENV)/bin/python -m pip install --quiet -c constraints.txt -c docs/constraints.txt -e '.[docs]'
	@touch $@
