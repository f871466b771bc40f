# `make` prints the targets. Each target bootstraps .venv when it is missing.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
DEMO := demo
# Tests at a time, more than there are cores: half of what they do is wait, for real clocks and for child processes.
WORKERS ?= 4
HISTORIES ?= 2000
AXE_VERSION := 4.14.1
AXE := .cache/axe-core/axe.min.js
SSLYZE_VERSION := 6.3.1
SSLYZE := .cache/sslyze/bin/sslyze
NGINX := .cache/nginx/usr/sbin/nginx
LOWEST := .cache/lowest
RUN_ONLY := .cache/run-only
# Every file of a package that any machine may need, by its hash; no address, so that any registry will do.
PIN := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
  --no-emit-index-url --custom-compile-command 'make constraints' $(ARGS)
# What hosts need that share a ledger.
MANY := --extra postgres --extra dask --extra metrics --extra otel
# Without compiled modules, every worker of the tests would compile all tests, and every process the program.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help catalogues demo demo-many tools test nightly search lowest check lint types imports docs faults simulate simulate-mistakes faults-long mutants mutants-planted bench sandbox site constraints wheel clean

help:  ## print the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# What running needs, and what an editable installation is built with.
.venv/runs: pyproject.toml constraints.txt constraints-build.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "payee-precheck needs Python 3.11 or later, and $(PYTHON) is not; try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; \
	  exit 1; }
	@echo "Installing precheck and the libraries that it needs, about 550 MB, into .venv"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement constraints.txt --requirement constraints-build.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation --editable .
	@touch $@

.venv/installed: .venv/runs constraints-dev.txt
	@echo "Installing what developing needs, about 600 MB more, into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement constraints-dev.txt
	@touch $@

demo: .venv/runs  ## check three sample files through all three APIs on the embedded sandbox
	$(BIN)/precheck run sample_data/payments_mixed.csv --out $(DEMO)/mixed --fresh
	$(BIN)/precheck run sample_data/payments_vop_standard.csv --profile sandbox-standard --out $(DEMO)/vop-standard --fresh
	$(BIN)/precheck run sample_data/payments_pain001.xml --out $(DEMO)/pain001 --fresh
	$(BIN)/precheck run sample_data/payments_pain001.xml --profile sandbox-standard --out $(DEMO)/pain001-standard --fresh
	@echo "The same in a browser, with a file of yours or a sample: $(BIN)/precheck desk"

demo-many: .venv/installed  ## share a file among three processes over a real PostgreSQL, kill one, and count what is left
	$(BIN)/python tests/demo_many.py $(ARGS)

tools: $(AXE) $(SSLYZE) $(NGINX)  ## fetch what some tests need: axe-core, sslyze, nginx and, as root on Debian, the programs they call
	@missing=; \
	[ -n "$$(ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null)" ] || command -v initdb >/dev/null || missing=postgresql; \
	for tool in strace:strace faketime:faketime soffice:libreoffice-calc-nogui chromium:chromium firefox-esr:firefox-esr tinyproxy:tinyproxy-bin; do \
	  command -v $${tool%:*} >/dev/null || missing="$$missing $${tool#*:}"; \
	done; \
	[ -z "$$missing" ] || apt-get update -qq || true; \
	for package in $$missing; do \
	  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$package >/dev/null || \
	  echo "no $$package: the tests that need it are skipped; install it, on Debian with apt-get" >&2; \
	done

$(AXE):
	@mkdir -p $(@D)
	@cd $(@D) && { npm pack --silent axe-core@$(AXE_VERSION) >/dev/null && \
	  tar -xzf axe-core-$(AXE_VERSION).tgz --strip-components=1 package/axe.min.js && rm axe-core-$(AXE_VERSION).tgz; } || \
	  echo "no axe-core: its test of the report page is skipped; install npm, on Debian with apt-get" >&2

# Unpacked and not installed: an installed one would listen on port 80.
$(NGINX):
	@mkdir -p .cache/nginx
	@cd .cache/nginx && { command -v nginx >/dev/null || \
	  { { apt-get download -qq nginx || { apt-get update -qq && apt-get download -qq nginx; }; } 2>/dev/null && \
	  dpkg -x nginx_*.deb . && rm nginx_*.deb; } || \
	  echo "no nginx: the tests of the desk behind a proxy are skipped; install it, on Debian with apt-get" >&2; }

# Its requirements do not go together with ours, so it has an environment of its own.
$(SSLYZE):
	@{ $(PYTHON) -m venv .cache/sslyze && \
	  .cache/sslyze/bin/python -m pip install --quiet --disable-pip-version-check sslyze==$(SSLYZE_VERSION); } || \
	  echo "no sslyze: its test of the sandbox's TLS is skipped" >&2

# One thread for the small frames in the processes of the tests, as users have; commands that they start have more.
test: .venv/installed  ## run the tests of the day: each promise, in a few minutes
	POLARS_MAX_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

nightly: .venv/installed  ## run all there is, some hours: every test, other examples, the long forms of the tables
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not faults'
	$(MAKE) search lowest faults-long simulate-mistakes mutants
	$(MAKE) simulate HISTORIES=100000

search: .venv/installed  ## try the property tests with examples that were never tried before
	PRECHECK_EXAMPLES=other $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not faults' $$(grep -rlE '^@(given|examples)|RuleBasedStateMachine' --include='test_*.py' tests/property tests/unit) $(ARGS)

lowest: $(LOWEST)/installed  ## run the tests of the day with the oldest libraries that pyproject.toml says will do
	$(LOWEST)/bin/python -m pytest -n $(WORKERS) --dist worksteal

$(LOWEST)/installed: pyproject.toml | .venv/installed
	$(PYTHON) -m venv --clear $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --group build --editable '.[dev]'
	@touch $@

check: lint types imports docs test  ## what must hold before a change goes in

lint: .venv/installed  ## formatting and ruff
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: .venv/installed  ## mypy, strict
	$(BIN)/mypy

imports: .venv/installed  ## the arrows between the layers
	$(BIN)/lint-imports

docs: .venv/installed  ## the generated pages are up to date, links lead somewhere, and commands print what pages show
	$(BIN)/python docs/generate.py --check
	$(BIN)/python -m pytest -q -n $(WORKERS) -m docs tests/end_to_end/test_tutorial.py tests/end_to_end/test_report_pictures.py tests/end_to_end/test_python_api.py

site: .venv/installed  ## build the documentation as a site that can be searched, in .cache/site; a broken link fails
	$(BIN)/python docs/website.py

catalogues: .venv/installed  ## gather the sentences of the desk, for its languages; what is new waits for a translation
	$(BIN)/python docs/catalogues.py

faults: .venv/installed  ## try the fault table, short form; prints tried, survived, figure, goal
	$(BIN)/python -m pytest tests/faults -m faults -q -n $(WORKERS) --dist worksteal

simulate: .venv/installed  ## play histories in a simulated world; HISTORIES=100000 is the nightly form
	$(BIN)/python tests/simulation/run.py --histories $(HISTORIES) $(ARGS)

simulate-mistakes: .venv/installed  ## make known mistakes in the program, and see that the simulation finds each
	$(BIN)/python tests/simulation/run.py --mistakes --histories 1000 $(ARGS)

faults-long: .venv/installed  ## the nightly form of the fault table; KILLS=100 is a tenth of its kills of sharing processes
	$(BIN)/python -m pytest tests/faults -m faults -q -n $(WORKERS) --dist loadfile --long

mutants: mutants-planted  ## change the code in small ways, and see that a test fails for each
	$(BIN)/python tests/mutants/run.py

mutants-planted: .venv/installed  ## only the planted faults, which take about two minutes
	$(BIN)/python tests/mutants/run.py --planted

bench: .venv/installed  ## measure what docs/dev/performance.md promises, beside what others would write
	$(BIN)/python tests/bench/run.py $(ARGS)

sandbox: .venv/runs  ## serve the three APIs with simulated answers until stopped
	$(BIN)/precheck sandbox

constraints: .venv/installed  ## pin what pyproject.toml names now, with hashes; ARGS=--upgrade takes the newest
	$(PIN) pyproject.toml --extra dev --group build --output-file constraints-dev.txt
	$(PIN) pyproject.toml --constraint constraints-dev.txt --output-file constraints.txt
	$(PIN) pyproject.toml $(MANY) --constraint constraints-dev.txt --output-file constraints-many.txt
	$(PIN) --group build --constraint constraints-dev.txt --output-file constraints-build.txt

wheel: .venv/installed $(RUN_ONLY)/installed  ## build the wheel, the source archive and the software bill of materials
	rm -rf dist
	$(BIN)/python -m build --quiet --no-isolation
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	  --output-file dist/payee-precheck.cdx.json $(RUN_ONLY)

$(RUN_ONLY)/installed: constraints.txt | .venv/installed
	$(PYTHON) -m venv --clear --without-pip $(RUN_ONLY)
	$(BIN)/python -m pip --python $(RUN_ONLY)/bin/python install --quiet --disable-pip-version-check --require-hashes --requirement constraints.txt
	@touch $@

clean:  ## remove what the other targets made
	rm -rf .venv $(DEMO) build dist sandbox .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
