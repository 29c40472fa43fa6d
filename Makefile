# Needs Python 3.11 or newer, make and a package registry; everything else is set up in .venv.
# `make demo` installs only what the package itself needs there; the other targets add the rest.

VENV ?= .venv
BIN := $(VENV)/bin
REQ := requirements
WORKERS ?= 2
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The first interpreter that starts and is recent enough.
RECENT := -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$p" $(RECENT) && { echo "$$p"; break; }; done)

.DEFAULT_GOAL := help
.PHONY: help demo test quick coverage lint docs wheel wheels kernel bench reproduce evidence faults proofs lock hooks clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.publish ## the main job on embedded data, ending with an HTML report
	@$(BIN)/quiltwork demo

test: $(VENV)/.dev ## tests, doctests, examples of the docs, docs site (ARGS="-k name" for some)
	@$(PYTEST) --durations=20 --assert=plain $(ARGS) || { code=$$?; [ $$code -ne 1 ] || $(FAILED); exit $$code; }

quick: $(VENV)/.dev ## a minute of tests: no Spark, PostgreSQL, doctests, packaging, docs, fuzzing
	@HYPOTHESIS_PROFILE=quick $(PYTEST) tests --quick --assert=plain \
		$(SLOW:%=--ignore=tests/%) -k "not postgres" $(ARGS)

coverage: $(VENV)/.dev ## all tests again with every line and branch counted, at least 90 % of them
	@$(PYTEST) --cov

lint: $(VENV)/.dev ## ruff (rules and format) and mypy in strict mode
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

docs: $(VENV)/.dev ## the documentation site in docs/_build/html; a warning is an error
	@$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

wheel: $(VENV)/.dev ## the wheel and the source archive in dist
	@$(BIN)/python -m build --no-isolation --outdir dist

wheels: $(VENV)/.dev $(VENV)/.zig ## the source archive, and wheels for Linux, macOS and Windows on x86-64 and arm64, all from here
	@$(BIN)/python -m build --sdist --no-isolation --outdir dist
	@for tag in $$($(KERNEL) --tags); do \
		QUILTWORK_TARGET=$$tag $(BIN)/python -m build --wheel --no-isolation --outdir dist || exit 1; done

kernel: | $(BIN)/python ## compile the loops in C again if they have changed, as the first import does, too
	@$(KERNEL)

bench: $(VENV)/.dev ## time quiltwork against its peers (ONLY=name for one); results in bench/results
	@$(BIN)/python -m bench.run $(ONLY)

reproduce: $(VENV)/.dev ## the papers' values beside ours (ONLY=name for one, FULL=1, DOCS=1 for docs/_generated); reproduction/index.html
	@$(BIN)/python -m papers $(if $(FULL),--full) $(if $(DOCS),--docs docs/_generated) $(ONLY)

evidence: $(VENV)/.dev ## the full counts behind the guarantees (ONLY=name, FORCE=1); results in evidence/results
	@$(BIN)/python -m evidence.run $(if $(FORCE),--force) $(ONLY)

faults: $(VENV)/.dev ## crash, cut and crowd the ledger; prints trials and violations
	@$(BIN)/python -m evidence.run --force ledger_faults

proofs: ## compile the machine-checked theorems and print what each assumes (Debian: apt-get install coq libcoq-mathcomp)
	@command -v coqc >/dev/null || { echo "make proofs needs Coq and MathComp; on Debian 12: apt-get install coq libcoq-mathcomp" >&2; exit 1; }
	@$(MAKE) --no-print-directory -C proofs check

lock: $(BIN)/uv ## pin the requirements again (UPGRADE=1 for newer versions)
	$(COMPILE) pyproject.toml --extra data --extra plot --extra postgres --extra spark --extra server --extra mcp $(REQ)/dev.in -o $(REQ)/dev.txt
	$(COMPILE) pyproject.toml -c $(REQ)/dev.txt -o $(REQ)/core.txt
	$(COMPILE) pyproject.toml --extra publish -c $(REQ)/dev.txt -o $(REQ)/publish.txt
	$(COMPILE) pyproject.toml --extra server --extra postgres --extra publish -c $(REQ)/dev.txt -o $(REQ)/server.txt
	$(COMPILE) $(REQ)/build.in -c $(REQ)/dev.txt -o $(REQ)/build.txt
	$(COMPILE) $(REQ)/zig.in -o $(REQ)/zig.txt

hooks: $(VENV)/.dev ## run the checks of .pre-commit-config.yaml before every commit
	@$(BIN)/pre-commit install

clean: ## remove the virtual environment and everything generated
	rm -rf $(VENV) build dist docs/_build htmlcov .coverage .coverage.* \
		proofs/*.vo proofs/*.vo[sk] proofs/*.glob proofs/.*.aux proofs/assumptions.txt .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-report reproduction

KERNEL = $(BIN)/python src/quiltwork/influence/kernel/building.py
PYTEST = $(BIN)/python -m pytest -n $(WORKERS)
FAILED = $(BIN)/python -m pytest --last-failed --last-failed-no-failures none # again, with the values in them
SLOW = tables/spark budget/ledger/test_faults.py papers test_packaging.py test_docs_site.py \
	test_docs_examples.py test_fuzz.py
test quick coverage: export PYTHONDONTWRITEBYTECODE := # many processes start: none should compile again

COMPILE = UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --universal \
	--fork-strategy fewest --python-version 3.11 --generate-hashes --no-emit-index-url $(if $(UPGRADE),--upgrade)
# The lock is complete, so nothing is left to resolve (and a release newer than a pin cannot disturb).
# Modules are compiled when they are imported, for tests all of them by every core: pip has one.
INSTALL = $(BIN)/python -m pip install -qq --require-hashes --no-deps --no-compile
INSTALL_PACKAGE = $(BIN)/python -m pip install -qq --no-deps --no-build-isolation --editable .

$(BIN)/python:
	@"$(PYTHON)" $(RECENT) || { echo "quiltwork needs Python 3.11 or newer, and found none; install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "setting up $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { echo "python -m venv failed; on Debian and Ubuntu: apt install python3-venv" >&2; rm -rf $(VENV); exit 1; }

# A stamp is newer than what it was made from, so a second run starts at once.
$(VENV)/.core: $(REQ)/core.txt $(REQ)/build.txt pyproject.toml hatch_build.py | $(BIN)/python
	@echo "installing the package and its dependencies in $(VENV)"
	@$(INSTALL) -r $(REQ)/core.txt -r $(REQ)/build.txt
	@$(KERNEL) --compiler || { echo "no C compiler (CC, cc, gcc, clang): Zig's is downloaded, about 100 MB"; \
		$(INSTALL) -r $(REQ)/zig.txt; }
	@$(INSTALL_PACKAGE)
	@touch $@

$(VENV)/.zig: $(REQ)/zig.txt | $(VENV)/.core
	@$(INSTALL) -r $(REQ)/zig.txt
	@touch $@

$(VENV)/.publish: $(REQ)/publish.txt $(VENV)/.core
	@$(INSTALL) -r $(REQ)/publish.txt
	@touch $@

$(VENV)/.dev: $(REQ)/dev.txt $(VENV)/.core
	@echo "installing what tests, docs and benches need in $(VENV) (a minute or two, once)"
	@$(INSTALL) -r $(REQ)/dev.txt
	@$(BIN)/python -W ignore -m compileall -qq -j 0 $(VENV)/lib || true # some are for other versions of Python
	@touch $@

$(BIN)/uv: | $(BIN)/python
	@$(BIN)/python -m pip install -qq uv
