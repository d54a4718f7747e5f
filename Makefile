# `make` lists what there is. Every target sets up .venv first if need be; nothing else is needed
# than Python 3.11 or newer. On Windows use a shell that has make and sh, such as Git's.
PYTHON ?= python3 python python3.14 python3.13 python3.12 python3.11
TORCH ?=
PIP_ARGS ?=
ARGS ?=
N_JOBS ?=
CORPUS ?=
FILE ?=
DRAFT ?= bigram
K ?= 2
DRAWS ?= 1000000

# words that may hold blanks or signs reach the shell as variables of its own, "$$FILE": make puts
# what is given to it into the environment

# of the server; some shells keep a HOST of their own, which is not meant
HOST =
PORT ?=
ALLOWED_HOSTS ?=
BACKEND ?=

ifeq ($(OS),Windows_NT)
PY := .venv/Scripts/python.exe
else
PY := .venv/bin/python
endif
# another torch is another set-up
READY := .venv/.ready$(if $(TORCH),-$(subst /,-,$(subst :,-,$(subst =,-,$(word 1,$(TORCH))))))
JOBS := $(if $(N_JOBS),n_jobs=$(N_JOBS))

.DEFAULT_GOAL := help
.PHONY: help setup sweep sweep-quick dry-run resume ui compare export import server test lint train check-distribution same-text bench bench-load clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1@\2/p' Makefile | while IFS=@ read -r a b; do printf '%-26s %s\n' "$$a" "$$b"; done
	@echo
	@echo '  ARGS="draft=int8 k=1,2" adds settings to sweep, dry-run and the like; N_JOBS=2 sets the workers;'
	@echo '  PYTHON=/path/to/python and TORCH=torch==2.13.0 choose what .venv is made of.'

setup:  ## make .venv, or mend it; the other targets do it when need be
	@test -x $(PY) || rm -f .venv/.ready*
	@$(MAKE) -s --no-print-directory $(READY)

# a .venv without a .ready file was broken off: it is made anew
$(READY): pyproject.toml constraints.txt
	@found=; for p in $(PYTHON); do \
	  if "$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$p; break; fi; done; \
	if [ -z "$$found" ]; then \
	  for p in $(PYTHON); do has=$$("$$p" -V 2>&1) && break; has=; done; \
	  echo "specsweep needs Python 3.11 or newer, and $${has:-no Python} is what was found: install one, or name it with make PYTHON=/path/to/python" >&2; \
	  exit 1; fi; \
	ls .venv/.ready* >/dev/null 2>&1 || "$$found" -m venv --clear .venv
	@rm -f .venv/.ready*
	@if [ -n "$(TORCH)" ]; then sed '/^torch==/d' constraints.txt; else cat constraints.txt; fi > .venv/constraints.txt
	@echo "setting up .venv (a few minutes the first time)"
	@$(PY) -m pip install --quiet --disable-pip-version-check -c .venv/constraints.txt $(PIP_ARGS) $(if $(TORCH),"$(TORCH)") -e ".[dev]"
	@touch $(READY)

sweep: setup  ## the main job: measure the drafts on this machine, show the table
	@$(PY) -m pipeline.sweep $(JOBS) $(ARGS)

sweep-quick: setup  ## a first look, well under a minute
	@$(PY) -m pipeline.sweep experiment=quick $(JOBS) $(ARGS)

dry-run: setup  ## list a sweep's jobs and about how long they take, run none
	@$(PY) -m pipeline.sweep dry_run=true $(JOBS) $(ARGS)

resume: setup  ## go on with the newest sweep, or with ARGS=SWEEP
	@$(PY) -m pipeline.resume $(ARGS)

ui: setup  ## open MLflow's page at the newest sweep
	@$(PY) -m tracking ui --open $(ARGS)

compare: setup  ## the newest sweeps of each machine and load side by side
	@$(PY) -m tracking compare $(ARGS)

export: setup  ## the newest sweep as one file; FILE=name.zip, ARGS="--sweep ID" or ARGS=--all
	@$(PY) -m tracking export $(if $(FILE),"$$FILE") $(ARGS)

import: $(if $(FILE),setup)  ## merge such a file into this machine's store; FILE=name.zip
	@$(if $(FILE),,echo "name the file: make import FILE=specsweep-….zip" >&2; exit 2)
	@$(PY) -m tracking import "$$FILE" $(ARGS)

# a password in BACKEND is not for everybody who may list processes: it goes by the environment
server: export SPECSWEEP_BACKEND := $(value BACKEND)
server: setup  ## an MLflow server for a team; HOST=, PORT=, ALLOWED_HOSTS=a,b, BACKEND=postgresql://…
	@$(PY) -m tracking server $(if $(HOST),--host "$$HOST") $(if $(PORT),--port "$$PORT") $(if $(ALLOWED_HOSTS),--allowed-hosts "$$ALLOWED_HOSTS") $(ARGS)

# many tests wait, for servers and browsers: three at once keep two cores busy
test: setup  ## run the tests, three side by side; one after the other: ARGS=-n0
	@$(PY) -m pytest -n 3 --dist loadfile $(ARGS)

lint: setup  ## style and types
	@$(PY) -m ruff check . && $(PY) -m ruff format --check . && $(PY) -m mypy

train: setup  ## fit the weights anew; CORPUS=file.txt on a text of your own
	@$(PY) -m pipeline.train $(if $(CORPUS),--corpus "$$CORPUS") $(ARGS)

check-distribution: setup  ## draws against the target's law; DRAFT=bigram K=2 DRAWS=1000000
	@$(PY) -m pipeline.check_distribution draft=$(DRAFT) k=$(K) draws=$(DRAWS) $(JOBS) $(ARGS)

same-text: setup  ## plain decoding's text and every draft's, one below the other
	@$(PY) -m pipeline.same_text $(ARGS)

bench: setup  ## the engine in figures, against its goals and against transformers; under 10 minutes
	@$(MAKE) -s --no-print-directory .venv/.ready-hf || \
	  echo "bench: transformers could not be installed: it goes on without the comparison" >&2
	@$(PY) -m pipeline.bench $(ARGS)

# what is there already stays as it is, torch too
.venv/.ready-hf: $(READY)
	@echo "adding transformers to .venv, once"
	@$(PY) -m pip install --quiet --disable-pip-version-check -c .venv/constraints.txt $(PIP_ARGS) -e ".[dev,hf]"
	@touch $@

bench-load: setup  ## does a busy machine report the same ratio? half an hour, under a load made for it
	@$(PY) -m pipeline.bench.load $(ARGS)

clean:  ## remove .venv and caches; results stay
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info
	@find pipeline tracking tests -name __pycache__ -prune -exec rm -rf {} +
