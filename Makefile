# The book's commands. `make book` and `make test` need only Python 3.11-3.13, make and git.
# Every step stamps the *contents* of its inputs under _build/stamps, so that a second run is quick.

# --- what you may set ------------------------------------------------------------------------
# PYTHON: the interpreter to make the environment with (default: python3 if it fits, else 3.11, 3.12, 3.13)
# VENV:   where the environment is made; with INSTALL=no it is used as it stands
# NAME:   the chapter that `make chapter` begins
# LANGUAGE: zh_CN builds the pages in Chinese as well
PYTHON  ?=
VENV    ?= .venv
INSTALL ?= yes
JOBS    ?= 2
PORT    ?= 8000
ALL     ?=
NAME    ?=
TAG     ?=

# --- where it can work ---------------------------------------------------------------------------
# No virtual environment can be made below a colon, and no command line survives the others.
BAD := $(strip $(foreach c,: ' " ` $$,$(findstring $c,$(CURDIR))))
ifneq ($(BAD),)
$(error This folder's path holds the character $(BAD). Move the book to a path without : ' " ` and $$)
endif

# --- nothing of the caller's environment leaks in ----------------------------------------------
unexport VIRTUAL_ENV CONDA_PREFIX PYTHONHOME PYTHONSTARTUP MPLBACKEND MATPLOTLIBRC JUPYTER_PATH PYTEST_ADDOPTS
export PYTHONPATH := $(CURDIR)/code
export PYTHONNOUSERSITE := 1
export JUPYTER_NO_CONFIG := 1
export IPYTHONDIR := $(CURDIR)/_build/ipython
export MPLCONFIGDIR := $(CURDIR)/_build/matplotlib
# Tests run side by side; threads inside each would only wait for one another. (tools/execute.py sets the kernels'.)
export OMP_NUM_THREADS ?= 1

# One line for every interruption; what was interrupted says nothing, or only its own.
INTERRUPTED := trap 'echo "Interrupted. What was finished is kept, and the next run goes on from there." >&2; exit 130' INT
VPYTHON := "$(VENV)/bin/python"
RUN := $(INTERRUPTED); $(VPYTHON)
# By its module and not by its script, so that the folder may be moved.
JUPYTER_BOOK := $(VPYTHON) -c "from jupyter_book.cli.main import main; main()"
SITE := chapters read ledger guide gallery reference code linewise.yml kernel.json tools/figure_scripts.py tools/figure_models.py tools/figure_models.yml \
        tools/publish.py _config.yml _toc.yml _ext _static references.bib \
        $(wildcard *.md) CITATION.cff LICENSE LICENSE-TEXT constraints.txt

# Of the edition in another language: what stands in the names of its files.
OTHER = $(if $(filter-out en,$(LANGUAGE)),.$(LANGUAGE))

.DEFAULT_GOAL := help
.PHONY: help book chinese edition translate test due chapter pdf epub release figures serve lab lint format clean execute kernel bench mutants lock environment notebooks site tests hooks links

help: ## list the commands
	@grep -hE '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

book: environment ## make the environment, execute every notebook, build the site into _build/html (LANGUAGE=zh_CN: in Chinese too)
	@+$(MAKE) --no-print-directory -j3 notebooks $(if $(OTHER),edition,site) # a site needs one core for a part of the time
	@echo "The book is in _build/html/index.html (make serve: http://localhost:$(PORT))"

test: lint tests ## prove all of it: lint, notebooks, package, figures, ledger, site (ALL=1: every test)

due: environment ## list the notebooks and tests that are due, and which change makes them so
	@$(RUN) tools/due.py

pdf: environment notebooks ## typeset the book for paper: _build/pdf/attention-checked.pdf (says which Debian packages it needs; LANGUAGE=zh_CN)
	@$(RUN) tools/stamps.py pdf$(OTHER) --inputs $(SITE) $(if $(OTHER),lang) tools/typeset.py \
	  --output _build/pdf/attention-checked$(OTHER).pdf -- $(VPYTHON) tools/typeset.py pdf $(OTHER:.%=--language %)

epub: environment notebooks ## make an e-book, checked by epubcheck: _build/epub/attention-checked.epub (LANGUAGE=zh_CN)
	@$(RUN) tools/stamps.py epub$(OTHER) --inputs $(SITE) $(if $(OTHER),lang) tools/typeset.py \
	  --output _build/epub/attention-checked$(OTHER).epub -- $(VPYTHON) tools/typeset.py epub $(OTHER:.%=--language %)

release: book pdf epub ## the files of a version, each checked, in _build/release: wheels, sdists, site, PDF, e-book (TAG=v1.0.0)
	@$(VPYTHON) -c "import build, twine" 2>/dev/null || { echo "release: installing build and twine"; \
	  env -u PYTHONPATH $(VPYTHON) -m pip install -q -c constraints.txt --no-build-isolation -e ".[release]"; }
	@$(RUN) tools/release.py $(TAG)

figures: execute ## fill figures/ with what the notebooks draw, PNG and SVG (runs the changed ones first)

serve: book ## build, and read the book at http://localhost:8000 (PORT=...)
	@$(VPYTHON) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

lab: environment ## open the chapters in JupyterLab, which is installed the first time (PORT=...)
	@$(VPYTHON) -c "import jupyterlab, jupyterlab_myst" 2>/dev/null || { echo "lab: installing JupyterLab"; \
	  env -u PYTHONPATH $(VPYTHON) -m pip install -q -c constraints.txt --no-build-isolation -e ".[lab]"; }
	@$(INTERRUPTED); env -u JUPYTER_NO_CONFIG $(VPYTHON) -m jupyterlab --ServerApp.root_dir=. --port=$(PORT) $(if $(filter 0,$(shell id -u)),--allow-root) \
	  --LabApp.default_url=/lab/tree/chapters/operator/query_match_aggregate.ipynb

translate: environment ## bring the catalogues of the other edition up to date, list what is missing or stale, check what is there
	@$(RUN) tools/translate.py merge
	@$(RUN) tools/translate.py check

lint: environment ## ruff (rules and format) and mypy
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy

format: environment ## put the code into its standard form
	@$(RUN) -m ruff format .
	@$(RUN) -m ruff check --fix .

execute: environment ## re-run the notebooks that have changed, store their outputs, publish figures (ALL=1: every one)
	@$(RUN) tools/execute.py --jobs $(JOBS) $(if $(ALL),--all)
	@$(RUN) tools/publish.py $(if $(ALL),--all)

kernel: environment ## have Coq prove the derivations' changed steps as well, and record it (apt-get install coq; ALL=1: every step)
	@$(RUN) tools/kernel.py --jobs $(JOBS) $(if $(ALL),--all)

chapter: environment ## begin a chapter: notebook, claims and attacks that keep every rule (NAME=matrix/example)
	@$(RUN) tools/chapter.py "$$NAME"

bench: environment ## time notebooks and commands against their budgets (ONLY=notebooks, ONLY=book, ONLY=pages)
	@$(RUN) tools/bench.py $(if $(ONLY),--only $(ONLY))

mutants: environment ## change the package in one place at a time, and see whether a test notices (SAMPLE=200)
	@$(VPYTHON) -c "import cosmic_ray" 2>/dev/null || { echo "make mutants needs: $(VENV)/bin/python -m pip install -c constraints.txt -e '.[mutants]'" >&2; exit 1; }
	@$(RUN) tools/mutants.py --jobs $(JOBS) $(if $(SAMPLE),--sample $(SAMPLE))

hooks: environment ## once in a clone: checks before each commit, and notebook diffs that people can read
	@$(VPYTHON) -c "import pre_commit" 2>/dev/null || { echo "make hooks needs: $(VENV)/bin/python -m pip install -c constraints.txt -e '.[dev]'" >&2; exit 1; }
	@$(VPYTHON) -m pre_commit install
	@git config diff.notebook.textconv "python3 tools/readable_notebook.py"

links: environment ## ask every address that the book names whether it is there (needs a network)
	@$(INTERRUPTED); $(JUPYTER_BOOK) build . -q --builder linkcheck --path-output _build/links

lock: ## pin in constraints.txt what pyproject.toml asks for, with uv (ALL=1: every pin but torch's anew)
	@command -v uv >/dev/null || { echo "make lock needs uv: pip install uv" >&2; exit 1; }
	@{ echo setuptools; grep '^torch==' constraints.txt; } | uv pip compile pyproject.toml - --quiet --universal --fork-strategy fewest --all-extras \
	  --python-version 3.11 --no-header --no-annotate --no-emit-index-url $(if $(ALL),--upgrade) -o constraints.txt

clean: ## remove what was built; the environment stays (rm -r .venv removes it)
	@rm -rf _build results .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find code tools tests _ext -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# --- the steps behind them ---------------------------------------------------------------------
environment:
ifeq ($(INSTALL),no)
	@$(VPYTHON) -c "import sys; from importlib.util import find_spec as f; \
	  sys.exit(not all(map(f, ['attnmath', 'attnlab', 'linewise', 'jupyter_book', 'nbval', 'hypothesis'])))" || \
	  { echo "INSTALL=no: $(VENV) does not hold what the book needs" >&2; exit 1; }
else
	@$(INTERRUPTED); env -u PYTHONPATH sh tools/environment.sh "$(VENV)" $(if $(PYTHON),"$(PYTHON)")
endif

notebooks:
	@$(RUN) tools/prove.py --jobs $(JOBS)

site:
	@$(RUN) tools/stamps.py site --inputs $(SITE) --output _build/html/index.html \
	  --remove _build/html _build/.doctrees _build/jupyter_execute -- \
	  $(JUPYTER_BOOK) build . -W -n --keep-going -q

chinese:
	@$(RUN) tools/stamps.py chinese --inputs $(SITE) lang tools/translate.py --output _build/zh_CN/_build/html/intro.html \
	  --remove _build/zh_CN -- $(VPYTHON) tools/translate.py build

edition: site chinese
	@$(RUN) tools/stamps.py edition --inputs $(SITE) lang tools/translate.py --output _build/html/zh/intro.html \
	  -- $(VPYTHON) tools/translate.py join

tests: LANGUAGE := zh_CN
tests: book
	@$(RUN) tools/due_tests.py --jobs $(JOBS) $(if $(ALL),--all)
