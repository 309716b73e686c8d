# make alone prints this help. Everything lives in .venv/ and .dagster/, both ignored by git.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
INSTANCE := .dagster/dagster.yaml
PORT ?= 3000
# The days that `make run` makes: those of the sample. For another dataset: make run DAYS=2010-12-01...2011-01-31
DAYS ?= 2025-03-03...2025-03-09
# Options of `make bench`, say '--events 5000000 --runs 5' for less of it, or '--history --long' for all of it.
BENCH ?=

export DAGSTER_HOME := $(CURDIR)/.dagster
# Dagster says of each of its commands that a newer one exists, and works.
QUIET := PYTHONWARNINGS=ignore:Function:FutureWarning,ignore:Parameter:Warning
INFO := --config-json '{"loggers": {"console": {"config": {"log_level": "INFO"}}}}'

.PHONY: help run ui test check fix mutants bench clean
.DEFAULT_GOAL := help

help:  ## print this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(INSTALLED) $(INSTANCE)  ## make the features of the sample: all assets, all days, proven (PIPELINE_DATASET, DAYS: yours)
	@$(BIN)/python -m pipeline check
	@began=$$(date +%s); \
	$(QUIET) $(BIN)/dagster asset materialize -m pipeline.definitions --select '*' --partition-range $(DAYS) $(INFO) \
	  || $(BIN)/python -m pipeline failure --since $$began
	@$(BIN)/python -m pipeline show

ui: $(INSTALLED) $(INSTANCE)  ## open the UI, with the runs made so far, on http://127.0.0.1:3000 (PORT)
	@$(QUIET) $(BIN)/dagster dev --host 127.0.0.1 --port $(PORT)

test: $(INSTALLED)  ## run the tests, without the slow ones
	@$(BIN)/python -m pytest -m 'not slow'

check: .venv/.dev  ## lint, format, types and the order of the layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@$(BIN)/lint-imports

fix: .venv/.dev  ## mend what ruff can mend
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

mutants: $(INSTALLED)  ## break the code in known ways; every break has to turn a test red
	@$(BIN)/python -m pipeline_tests.mutants

bench: .venv/.bench  ## measure speed and memory against others; writes docs/benchmarks*.md (BENCH: options)
	@$(BIN)/python -m pipeline_tests.bench $(BENCH)
	@$(BIN)/python -m pipeline_tests.bench.ingestion

clean:  ## remove the environment, the Dagster instance and the output of the sample
	rm -rf .venv .dagster data/out

$(INSTALLED): pyproject.toml constraints.txt
	@echo 'Installing into .venv (minutes the first time: torch is large)'
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@

.venv/.dev: $(INSTALLED)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[test,dev]'
	@touch $@

.venv/.bench: $(INSTALLED)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[test,bench]'
	@touch $@

$(INSTANCE): dagster_instance.yaml
	@mkdir -p .dagster
	@cp dagster_instance.yaml $@
