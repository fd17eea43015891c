# Every target sets up what it needs in .venv; an up-to-date one is left alone.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
# Tests of one file stay together: they share what is costly to make.
ON_ALL_CORES := --numprocesses auto --maxprocesses 4 --dist loadfile

.PHONY: help train test test-all fuzz check format bench results clean

help:
	@echo "make train     train an agent on MinAtar Breakout, in minutes; again: continue it"
	@echo "make test      the fast test suite"
	@echo "make test-all  every test, the slow ones too"
	@echo "make fuzz      mutated files against every reader, for an hour; MINUTES=600 for longer"
	@echo "make check     formatting, lint and types"
	@echo "make format    apply formatting and safe lint fixes"
	@echo "make bench     measure speed"
	@echo "make results   reports of the committed runs in results/ made anew, and their tables in the documents"
	@echo "make clean     remove .venv and caches"

$(INSTALLED): pyproject.toml constraints.txt
	@echo "setting up .venv with the tested versions, once: a minute or two ..."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

train: $(INSTALLED)
	$(BIN)/dae train MinAtar/Breakout-v1 --preset quick

test: $(INSTALLED)
	$(BIN)/python -m pytest $(ON_ALL_CORES) -m "not slow"

test-all: $(INSTALLED)
	$(BIN)/python -m pytest $(ON_ALL_CORES)

MINUTES ?= 60
fuzz: $(INSTALLED)
	$(BIN)/python -m tests.fuzzing --minutes $(MINUTES)

check: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

# The reports of the committed runs, and their tables where documents quote them.
results: $(INSTALLED)
	for report in results/*/report; do $(BIN)/dae report $${report%/report} --out $$report || exit 1; done
	$(BIN)/dae sweep laptop --out results/laptop
	$(BIN)/python -m tests.quoting

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
