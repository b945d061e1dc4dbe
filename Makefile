# On a fresh machine with Python 3.10+, git and make: `make crawl`. Everything is installed into virtualenvs below.

PYTHON ?= python3
VENV ?= .venv
VENV_TEST ?= .venv-test
VENV_DOCS ?= .venv-docs
VENV_CORPUS ?= .venv-corpus
VENV_EXPORT ?= .venv-export
URLS ?=
MINUTES ?= 10
DATA ?= .cache/wcxb-dev
EXTRA ?= $(wildcard .cache/read-labels)
SETS ?= $(if $(filter file,$(origin DATA)),$(wildcard .cache/elsewhere .cache/sites))
FACTS ?= $(if $(filter file,$(origin DATA)),$(wildcard .cache/facts))
KINDS ?= $(if $(filter file,$(origin DATA)),$(wildcard .cache/kinds))
PEERS ?= trafilatura,trafilatura-no-comments,resiliparse
ARGS ?=
EXTRAS ?= dev
LAB_EXTRAS ?= dev
PACKAGES ?=
PYTEST ?= pytest
JOBS ?= -n 4 --dist worksteal

comma := ,
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help crawl crawl-js corpus-demo test test-corpus test-export coverage lint docs docs-build reference fuzz train evaluate benchmark clean

# $(call install,VIRTUALENV,EXTRA,PIP OPTIONS,EXTRA OF THE LABORATORY): pip only prints errors. It is upgraded first,
# because the pip that comes with Python 3.11 does not match all extras. The laboratory is installed if its extra is
# named.
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or later is needed; name one: make PYTHON=python3.12")'
	@echo "Installing scrapy-dripper[$(2)]$(if $(4), and scrapy-dripper-lab[$(4)]) into $(1) ..."
	@test -x '$(1)/bin/python' || $(PYTHON) -m venv '$(1)'
	@'$(1)/bin/python' -m pip install -qq --disable-pip-version-check --upgrade pip
	@'$(1)/bin/python' -m pip install -qq -e '.[$(2)]' $(if $(4),-e 'lab[$(4)]') $(3)
	@touch $@
endef

help:  ## List the targets
	@echo 'make TARGET [PYTHON=$(PYTHON)] [ARGS="..."]'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s  %s\n", $$1, $$2 }' Makefile

crawl: $(VENV)/.installed-cpu  ## Crawl the example site and show the results; or URLS="https://..."
	@'$(VENV)/bin/python' example_project/crawl.py $(if $(URLS),--urls $(foreach url,$(URLS),'$(url)')) $(ARGS)

crawl-js: $(VENV)/.installed-playwright  ## Crawl a page that JavaScript writes (gets a Chromium if there is none)
	@PYTHONPATH=example_project '$(VENV)/bin/python' -c 'from example.browser import find_chromium as f; exit(not f())' \
	  || '$(VENV)/bin/python' -m playwright install chromium
	@'$(VENV)/bin/python' example_project/crawl.py --js $(ARGS)

corpus-demo: $(VENV_CORPUS)/.installed-corpus  ## Archive the example site, extract and clean the archives
	@'$(VENV_CORPUS)/bin/python' example_project/corpus.py $(ARGS)

# Tests of crawls often wait, so four at a time keep two cores busy. They start many processes, which should find
# compiled modules and need no threads for arithmetic.
test: $(VENV_TEST)/.installed-dev  ## Run the tests of both packages in their own virtualenv; ARGS="-k name" is passed to pytest
	@PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 '$(VENV_TEST)/bin/python' -m $(PYTEST) $(JOBS) $(ARGS)

# pyarrow takes 170 MB, so these tests have their own virtualenv. It has [clean] without fastText, which may have no
# wheel.
test-corpus: $(VENV_CORPUS)/.installed-corpus  ## Run the tests of archives, with datatrove and Parquet
	@'$(VENV_CORPUS)/bin/python' -m $(PYTEST) tests/corpus lab/tests/corpus $(ARGS)

# A file makes its models once, so its tests stay together.
test-export: $(VENV_EXPORT)/.installed-export  ## Run the tests of export and training, with torch
	@OMP_NUM_THREADS=1 '$(VENV_EXPORT)/bin/python' -m $(PYTEST) $(if $(JOBS),-n 2 --dist loadfile) lab/tests/export lab/tests/training/test_network.py lab/tests/training/test_train_qwen3.py $(ARGS)

# Code that needs torch or datatrove is tested in separate virtualenvs. Only lines that no run reaches count as missing.
coverage: $(VENV_TEST)/.installed-dev  ## Run all tests, including those with torch, and list the lines that none reaches
	@'$(VENV_TEST)/bin/python' -m coverage erase
	@$(MAKE) --no-print-directory test test-corpus test-export PYTEST='coverage run -m pytest' JOBS=
	@'$(VENV_TEST)/bin/python' -m coverage combine --quiet
	@'$(VENV_TEST)/bin/python' -m coverage report

lint: $(VENV_TEST)/.installed-dev  ## Check style and types
	@'$(VENV_TEST)/bin/python' -m ruff check .
	@'$(VENV_TEST)/bin/python' -m ruff format --check .
	@'$(VENV_TEST)/bin/python' -m mypy

docs: docs-build  ## Build the documentation and serve it on http://127.0.0.1:8000
	@'$(VENV_DOCS)/bin/python' -m http.server --bind 127.0.0.1 --directory build/docs 8000

docs-build: $(VENV_DOCS)/.installed-docs  ## Build the documentation into build/docs; a warning is an error
	@'$(VENV_DOCS)/bin/python' -m sphinx -q -W --keep-going $(ARGS) docs build/docs

reference: $(VENV_TEST)/.installed-dev  ## Write the generated parts of docs/reference
	@'$(VENV_TEST)/bin/python' docs/generate.py

fuzz: $(VENV)/.installed-fuzz  ## Try damaged pages for MINUTES; see docs/internals/reliability.md
	@OMP_NUM_THREADS=1 '$(VENV)/bin/python' -m fuzz --minutes $(MINUTES) $(ARGS)

train: $(VENV)/.installed-train  ## Train the tagger on the pages in DATA, SETS, FACTS and KINDS, with those in EXTRA; see docs/lab/training.md
	@'$(VENV)/bin/python' -m scrapy_dripper_lab.training '$(DATA)' $(foreach set,$(SETS),--set '$(set)') \
	  $(foreach set,$(FACTS),--set '$(set):0.3') $(foreach set,$(KINDS),--set '$(set):0.5') \
	  $(foreach set,$(EXTRA),--extra '$(set)') $(ARGS)

evaluate: $(VENV)/.installed-evaluate  ## Measure the bundled model on DATA and SETS, beside PEERS; see docs/lab/evaluation.md
	@'$(VENV)/bin/python' -m scrapy_dripper evaluate '$(DATA)' $(foreach set,$(SETS),'$(set)') \
	  $(if $(PEERS),--peers '$(PEERS)') $(ARGS)

benchmark: $(VENV)/.installed-benchmark  ## Measure speed beside Trafilatura on the development data
	@'$(VENV)/bin/python' benchmarks/extract.py
	@'$(VENV)/bin/python' benchmarks/crawl.py

clean:  ## Remove the virtualenvs and everything that was built; keep the data in .cache
	rm -rf '$(VENV)' '$(VENV_TEST)' '$(VENV_DOCS)' '$(VENV_CORPUS)' '$(VENV_EXPORT)' build dist *.egg-info lab/*.egg-info lab/build .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
	find scrapy_dripper lab models tests benchmarks example_project docs -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.installed-cpu: pyproject.toml setup.cfg
	$(call install,$(VENV),cpu)

$(VENV)/.installed-fuzz: pyproject.toml setup.cfg
	$(call install,$(VENV),fuzz)

$(VENV)/.installed-playwright: pyproject.toml setup.cfg
	$(call install,$(VENV),cpu$(comma)playwright)

$(VENV)/.installed-train: pyproject.toml setup.cfg lab/pyproject.toml
	$(call install,$(VENV),cpu,,train)

$(VENV)/.installed-evaluate: pyproject.toml setup.cfg lab/pyproject.toml
	$(call install,$(VENV),cpu,,evaluate)

$(VENV)/.installed-benchmark: pyproject.toml setup.cfg lab/pyproject.toml
	$(call install,$(VENV),cpu,,benchmark)

$(VENV_TEST)/.installed-dev: pyproject.toml setup.cfg lab/pyproject.toml constraints.txt
	$(call install,$(VENV_TEST),$(EXTRAS),-c constraints.txt $(PACKAGES),$(LAB_EXTRAS))

$(VENV_CORPUS)/.installed-corpus: pyproject.toml setup.cfg lab/pyproject.toml constraints.txt
	$(call install,$(VENV_CORPUS),cpu$(comma)corpus$(comma)tokenizers,-c constraints.txt -e lab spacy fasteners pyahocorasick pytest hypothesis 'coverage[toml]>=7.10')

$(VENV_DOCS)/.installed-docs: pyproject.toml setup.cfg lab/pyproject.toml constraints.txt
	$(call install,$(VENV_DOCS),docs,-c constraints.txt -e lab)

$(VENV_EXPORT)/.installed-export: pyproject.toml setup.cfg lab/pyproject.toml
	$(call install,$(VENV_EXPORT),cpu,pytest pytest-xdist hypothesis 'coverage[toml]>=7.10',export$(comma)train)
