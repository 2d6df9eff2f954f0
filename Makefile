# Two verbs do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JUDGE := .venv-judge
# What failed while both cores were busy is run once more by itself; a test that fails alone fails the run.
ALONE := -n 0 --exitfirst --last-failed --last-failed-no-failures none
ONCE_MORE := test $$? = 1 && echo "ONCE MORE, ALONE: the tests named above must pass by themselves" >&2
ON_POSTGRES := $(patsubst %,tests/journeys/test_%.py,search shared_memory currency graph_origin month)

.DEFAULT_GOAL := help
.PHONY: help install demo test browser screenshots lint bench judge docs clean

help: ## show the verbs
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP) ## install into .venv (uses uv when it is there, else venv + pip)

$(STAMP): pyproject.toml constraints.txt
	@if command -v uv >/dev/null 2>&1; then \
	  test -x $(BIN)/python || uv venv --quiet --python $(PYTHON) $(VENV); \
	  uv pip install --quiet --python $(BIN)/python --compile-bytecode -c constraints.txt -e . --group dev; \
	else \
	  test -x $(BIN)/python || $(PYTHON) -m venv $(VENV); \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . --group dev; \
	fi
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/.sdk: $(STAMP)
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(BIN)/python -c constraints.txt --group sdk; \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --group sdk; \
	fi
	@touch $@

demo: install ## show a working memory on a sample home
	@$(BIN)/python examples/demo.py

test: lint $(VENV)/.sdk ## lint, types, layers and all tests
	@$(BIN)/python -m pytest -n 2 --dist loadgroup || { $(ONCE_MORE) && $(BIN)/python -m pytest $(ALONE); }
	@export NANOCLAW_TEST_STORE=postgres; $(BIN)/python -m pytest -n 2 --dist loadgroup $(ON_POSTGRES) || \
	  { $(ONCE_MORE) && $(BIN)/python -m pytest $(ALONE) $(ON_POSTGRES); }

browser: install ## Chromium (Debian, as root) and Playwright, for the tests of the page that need a browser
	@command -v chromium >/dev/null || { apt-get update -q && \
	  apt-get install -y -q --no-install-recommends chromium chromium-driver fonts-dejavu-core; }
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(BIN)/python -c constraints.txt --group browser; \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --group browser; \
	fi

screenshots: browser ## make the pictures of the page in docs/images anew
	@$(BIN)/python docs/screenshots.py

lint: install ## ruff, mypy --strict, import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PYTHONPATH=src $(BIN)/lint-imports

bench: install ## run every measurement (long)
	@$(BIN)/python bench/run.py

judge: ## train the judge anew, in an environment of its own (about an hour on two cores)
	@test -x $(JUDGE)/bin/python || $(PYTHON) -m venv $(JUDGE)
	@$(JUDGE)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(JUDGE)/bin/python -m pip install --quiet --disable-pip-version-check -e . --group training
	@$(JUDGE)/bin/ncm models install multilingual-e5-small --home $(JUDGE)/home
	@$(JUDGE)/bin/python training/base.py --models $(JUDGE)/home/models --out $(JUDGE)/base
	@$(JUDGE)/bin/python training/train.py --base $(JUDGE)/base --folds 0 --seeds 1 --epochs 2 --out $(JUDGE)/judge
	@echo "$(JUDGE)/judge has the model; to use it, copy it to src/nanoclaw_memory/providers/judge_model"

docs: install ## write the pages and lists that are made from the code
	@$(BIN)/python docs/generate.py

clean: ## remove what install and tests made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
