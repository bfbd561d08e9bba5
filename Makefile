# make demo         sets up the linter alone and lints a shipped TPU dump
# make demo-triton  sets up the translator and libtpu (Linux), translates a shipped Triton kernel
# make test         sets up what development needs and runs the whole test suite
# make check        ruff, mypy and import-linter
# make clean        removes the environment and every cache

VENV ?= .venv
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3 python; do \
  "$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null \
    && { echo "$$python"; break; }; done)
DEMO ?= --chip v5e fixtures/planted/hlo/missing_donation_cache_v5e_bad.hlo.txt
DEMO_TRITON ?= fixtures/kernels/softmax.py --launch 'softmax(f32[64,781])'
PYTEST_ARGS ?= -n auto --dist loadfile

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo demo-triton test check ruff mypy walls clean

# A demonstration succeeds when it shows its findings: hence `--fail-on never`.
demo: $(VENV)/core.stamp
	$(BIN)/hlo-lint --fail-on never $(DEMO)

demo-triton: $(VENV)/triton.stamp
	$(BIN)/triton2pallas $(DEMO_TRITON)

test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest $(PYTEST_ARGS)

check: ruff mypy walls

ruff: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

mypy: $(VENV)/dev.stamp
	$(BIN)/mypy

walls: $(VENV)/dev.stamp
	$(BIN)/lint-imports --no-cache

clean:
	rm -rf $(VENV) build *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then echo "Python 3.11, 3.12 or 3.13 is needed" >&2; exit 1; fi
	$(PYTHON) -m venv $(VENV)

$(VENV)/core.stamp: pyproject.toml | $(BIN)/python
	$(PIP) install --editable .
	@touch $@

$(VENV)/triton.stamp: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[aot,triton]'
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[dev]'
	@touch $@
