# Two commands: `make demo` and `make test`. Both set everything up first, in .venv, pinned by constraints.txt.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# A worker for each core, and the tests of one module in one worker; PARALLEL= runs them one by one.
PARALLEL ?= --numprocesses auto --dist loadscope
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# What is loaded from .venv is compiled once and kept, also where the environment says otherwise: each process of a
# test would compile torch anew (2.7 s of the processor), and a server its framework (1.7 s).
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup board screenshots demo test test-slow test-lowest docs check audit format dist clean pages bench-gpu bench-harness bench-loaders bench-real bench-server \
	bench-splits bench-startup bench-training claims-gpu mutants same-as size claim-order rejudge statistics-report attack fuzz

help:
	@echo "make demo       run the quickstart: five kinds of shift, two baselines each, a board to open"
	@echo "make board      serve a board of recorded baselines: it prints its address (ARGS='--open --port 8080')"
	@echo "make screenshots"
	@echo "                make the pictures of the board's pages in docs/figures again"
	@echo "make test       run the tests"
	@echo "make test-slow  run the slow tests too (a whole quickstart, a clean install, the real lm-eval and Inspect)"
	@echo "make test-lowest"
	@echo "                run core tests with the lowest versions of the core dependencies, in an environment of their own"
	@echo "make docs       build the documentation's site into build/site"
	@echo "make pages      generate the lists of splits, rules, claims, baselines and attacks in docs/ (ARGS=--check)"
	@echo "make check      ruff, codespell and mypy"
	@echo "make size       how large the product is, and how deep a training, beside their bounds"
	@echo "make claim-order"
	@echo "                whether the rules of claims were committed before their outcomes"
	@echo "make rejudge CLAIMS='NAME ..'"
	@echo "                judge claims by changed rules or premises, from the stored predictions"
	@echo "make audit      known vulnerabilities of what is installed, by the OSV database"
	@echo "make bench-gpu, bench-harness, bench-loaders, bench-real, bench-server, bench-splits, bench-startup, bench-training"
	@echo "                measure, beside a peer or a limit in the same run"
	@echo "make claims-gpu check published claims on a GPU, as many as fit 25 minutes, and store what came of them"
	@echo "make same-as BASE=COMMIT"
	@echo "                compare what this tree prints with what another commit prints (BOARD=--board: its board too)"
	@echo "make statistics-report"
	@echo "                simulate how often the statistics are right, and write docs/statistics.md (ARGS='--trials 1000')"
	@echo "make attack     carry out every known attack on boards, draws, caches and screens"
	@echo "make fuzz       damaged exports, sealed answers, runs and data files, and submissions (CASES=2000)"
	@echo "make mutants    put small errors into four packages, one by one, and print those that no test notices"
	@echo "make dist       build the wheel and the source distribution into dist/"

setup: $(READY)

# torch first and alone, at the pinned version: nothing that comes later may replace it. What the demo needs comes
# uncompiled: it loads a small part of what is installed, which compiles as it is loaded.
define INSTALL
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 or newer is needed (set PYTHON=...)" >&2; exit 2; }
	@echo "setting up $(VENV) with $(PYTHON) for $(1) (about a minute, once)"
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt "$$(grep '^torch==' constraints.txt)"
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt -e '.[$(1)]'
endef

$(READY): pyproject.toml constraints.txt
	$(call INSTALL,dev)
	@touch $(VENV)/.ready-quickstart $@

$(VENV)/.ready-quickstart: pyproject.toml constraints.txt
	$(call INSTALL,quickstart)
	@touch $@

$(VENV)/.ready-docs: $(READY)
	$(call INSTALL,docs)
	@touch $@

demo: $(VENV)/.ready-quickstart
	$(BIN)/farshift quickstart $(ARGS)

# Predictions that come with the package, of benchmarks whose data are generated here: nothing is downloaded.
board: $(READY)
	$(BIN)/farshift board build build/board --benchmark modadd97/xi35 --only knn --only mlp --only naive-bayes
	$(BIN)/farshift board serve build/board $(ARGS)

SHOWN_ON := scan/length shapes/diagonal prefix_sums/32_to_64 modadd97/xi35 optdigits/writers

# The pictures of docs/, of recorded baselines on a benchmark of each kind: two minutes of processor time, most of it for
# the board.
screenshots: $(READY)
	$(BIN)/farshift board build build/screenshot-board $(addprefix --benchmark ,$(SHOWN_ON))
	$(BIN)/python tests/web/screenshots.py --docs build/screenshot-board/site

test: $(READY)
	$(BIN)/python -m pytest -m "not slow" $(PARALLEL) $(ARGS)

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow $(PARALLEL) $(ARGS)

LOWEST := .venv-lowest
# Tests of what needs no torch, board or picture: splits, parts, the cache, metrics, scores.
CORE_TESTS := tests/splits/test_*.py tests/loaders/test_part.py tests/loaders/test_cache.py tests/cli/test_cli_cache.py \
	tests/cli/test_cli_splits.py tests/benchmarks/test_score.py tests/benchmarks/test_metrics_laws.py

test-lowest: $(LOWEST)/.ready
	$(LOWEST)/bin/python -m pytest -m "not slow" $(PARALLEL) $(ARGS) $(CORE_TESTS)

$(LOWEST)/.ready: pyproject.toml .ci/lowest.py
	@test -x $(LOWEST)/bin/pip || $(PYTHON) -m venv $(LOWEST)
	$(PYTHON) .ci/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet --no-compile -c $(LOWEST)/constraints.txt -e . \
		hypothesis matplotlib pytest pytest-xdist scikit-learn
	@touch $@

# mkdocstrings reads all Python files below the package: a copy of them stands in for the clone, which has environments.
docs: $(VENV)/.ready-docs
	@rm -rf build/docs-source && mkdir -p build/docs-source/farshift
	@git ls-files '*.py' ':!tests' ':!.ci' | tar cf - -T - | tar xf - -C build/docs-source/farshift
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

# They are committed; a test compares them with what this would write.
pages: $(READY)
	$(BIN)/python .ci/pages/generate.py $(ARGS)

# mypy names a package after its folder: a link called farshift stands in for a clone of any name.
check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m codespell_lib .
	@mkdir -p $(VENV)/typecheck && ln -sfn "$(CURDIR)" $(VENV)/typecheck/farshift
	cd $(VENV)/typecheck && MYPYPATH=. ../bin/mypy -p farshift --config-file farshift/pyproject.toml

size: $(READY)
	$(BIN)/python .ci/size.py

claim-order: $(READY)
	$(BIN)/python .ci/claim_order.py

rejudge: $(READY)
	$(BIN)/python .ci/rejudge.py $(CLAIMS)

OSV ?= https://api.osv.dev/v1/query

# Known vulnerabilities of what is installed. pip-audit brings a pip of its own: it stays beside the environment.
audit: $(READY)
	@$(BIN)/python -m pip install --quiet --target $(VENV)/audit --upgrade pip-audit
	@$(BIN)/python -m pip freeze --exclude-editable | grep '==' > $(VENV)/audit.txt
	PYTHONPATH=$(VENV)/audit $(BIN)/python -m pip_audit --requirement $(VENV)/audit.txt --no-deps --disable-pip \
		--vulnerability-service osv --osv-url $(OSV) --progress-spinner off $(ARGS)

# mutmut brings versions of its own of what pytest needs: it stays beside the environment.
mutants: $(READY)
	@$(BIN)/python -m pip install --quiet --target $(VENV)/mutmut --upgrade -c constraints.txt mutmut
	PYTHONPATH=$(VENV)/mutmut $(BIN)/python .ci/mutants.py $(ARGS)

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench-harness: $(READY)
	$(BIN)/python tests/bench/harness.py

bench-loaders: $(READY)
	$(BIN)/python tests/bench/loaders.py $(ARGS)

bench-real: $(READY)
	$(BIN)/python tests/bench/real.py $(ARGS)

bench-server: $(READY)
	$(BIN)/python tests/bench/server.py $(ARGS)

bench-splits: $(READY)
	$(BIN)/python tests/bench/splits.py $(ARGS)

bench-startup: $(READY)
	$(BIN)/python tests/bench/startup.py

bench-training: $(READY)
	$(BIN)/python tests/bench/training.py

bench-gpu: $(READY)
	$(BIN)/python tests/bench/training_gpu.py $(ARGS)

# Published claims on a GPU: as many as fit, cheapest first. Outcomes and predictions lie in build/claims-gpu/results.
claims-gpu: $(READY)
	$(BIN)/farshift reproduce --all --device cuda --budget 25m --out build/claims-gpu --keep build/claims-gpu/results $(ARGS)

# Does this tree print what another commit prints? BOARD=--board adds the board of all recorded runs.
same-as: $(READY)
	$(BIN)/python tests/same_outputs.py $(BASE) $(BOARD) $(ARGS)

statistics-report: $(READY)
	$(BIN)/python tests/simulation/run.py $(ARGS)

# Those that take long are among them. What is printed last is the result of each.
attack: $(READY)
	$(BIN)/python -m pytest -m attack -rA --show-capture=no $(PARALLEL) $(ARGS)

CASES ?= 2000

fuzz: $(READY)
	FARSHIFT_FUZZ_CASES=$(CASES) $(BIN)/python -m pytest -m slow -k many_damaged $(PARALLEL) $(ARGS) \
		tests/leaderboard/test_fuzz_submissions.py tests/leaderboard/test_fuzz_folders.py \
		tests/leaderboard/sealed/test_fuzz_sealed.py tests/loaders/test_fuzz_files.py

dist: $(READY)
	rm -rf dist build
	$(BIN)/python -m build --outdir dist .

clean:
	rm -rf $(VENV) .venv-interop $(LOWEST) build dist *.egg-info .mypy_cache .ruff_cache .hypothesis
