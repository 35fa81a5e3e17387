# Two commands matter: `make run` and `make test`. Everything lives in .venv; nothing else is installed.
PYTHON ?= python3
BIN := .venv/bin
PORT ?= 8000
PIP_FLAGS := --quiet --disable-pip-version-check --require-hashes
# Exists while something is installed. pip takes a package that was written by half for an installed one, so whatever was
# interrupted begins again with an empty .venv; so does a .venv that somebody made by half in another way.
UNFINISHED := .venv/unfinished
ifneq ($(wildcard .venv),)
ifneq ($(wildcard $(UNFINISHED))$(if $(wildcard .venv/runtime),,half),)
$(info .venv is not complete: it is made again.)
$(shell rm -rf .venv)
endif
endif

# The pages' templates, as pip compiles the code (the Containerfile does it too): the first page waits for none of it.
COMPILE_TEMPLATES := from guichet.checkout.page_context import checkout_renderer as checkout; \
  from guichet.console.console import console_renderer as console; checkout().compile(); console().compile()

# $(call pip_install,requirements/x.txt)
pip_install = @touch $(UNFINISHED) && $(BIN)/pip install $(PIP_FLAGS) -r $(1) && rm $(UNFINISHED)

.PHONY: run test lint install dist pictures bench bench-quick budget clients chaos fuzz ha machines tracing mcp requirements clean

run: .venv/runtime  ## two demo merchants, keys, links into the console, and the whole service at http://127.0.0.1:8000 (PORT=8400)
	@$(BIN)/guichet demo --port $(PORT)

install: .venv/runtime  ## .venv with the guichet command

dist: .venv/runtime  ## wheel, source archive and WooCommerce plugin of the last commit, in dist/, byte for byte reproducible
	@$(BIN)/python -m release

pictures: .venv/dev  ## pictures of the console in docs/images/, of a new demonstration; needs Chromium
	@$(BIN)/python -m release.pictures

# Compiled files are kept even where the environment says otherwise: each of the four test runners, and each process that
# a test starts, would compile everything again.
test: .venv/dev  ## every test, on SQLite and on PostgreSQL
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 5 --dist worksteal

lint: .venv/dev  ## ruff, mypy --strict, import-linter, no marker of a conflict left in any file
	@! git grep -nE '^(<<<<<<<|>>>>>>>) '
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: .venv/bench  ## measures, side by side, into bench/results.md
	@$(BIN)/python -m bench

bench-quick: .venv/dev  ## every measure with fifty requests that must be answered right; writes nothing
	@$(BIN)/python -m bench --requests 50

budget: .venv/dev  ## what Guichet weighs, against the lines of bench/budget.md; needs valgrind
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m bench.budget

clients: .venv/clients clients/node_modules  ## clients generated from the OpenAPI document, compiled and run (clients/README.md)
	@$(BIN)/python -m clients $(CLIENTS)

chaos: .venv/dev  ## kills under live traffic on both databases, then three books compared: an hour (docs/reliability.md)
	@$(BIN)/python -m reliability.chaos --write $(CHAOS)

fuzz: .venv/dev  ## hostile requests and hostile answers by the hundred thousand, about 40 minutes (docs/reliability.md)
	@$(BIN)/python -m reliability.fuzz --write $(FUZZ)

ha: .venv/dev  ## dead machines: Patroni, etcd and HAProxy under load, a quarter of an hour; root on Debian
	@$(BIN)/python -m reliability.ha

machines: .venv/dev  ## failover, rejoin and switchover on three machines, by the documents' own commands; root on Debian
	@$(BIN)/python -m reliability.machines

tracing: .venv/tracing  ## what GUICHET_OTLP_ENDPOINT needs

mcp: .venv/mcp  ## what `guichet mcp` needs

requirements:  ## pin again (needs uv): newest versions, with hashes, naming no index
	uv pip compile --universal --generate-hashes --python-version 3.11 --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links requirements/runtime.in -o requirements/runtime.txt
	uv pip compile --universal --generate-hashes --python-version 3.11 --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links requirements/tracing.in -c requirements/runtime.txt -o requirements/tracing.txt
	uv pip compile --universal --generate-hashes --python-version 3.11 --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links requirements/mcp.in -c requirements/runtime.txt -o requirements/mcp.txt
	uv pip compile --universal --generate-hashes --python-version 3.11 --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links requirements/dev.in -c requirements/runtime.txt -o requirements/dev.txt
	uv pip compile --universal --generate-hashes --python-version 3.11 --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links requirements/bench.in -c requirements/dev.txt -o requirements/bench.txt
	uv pip compile --universal --generate-hashes --python-version 3.11 --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links requirements/clients.in -c requirements/dev.txt -o requirements/clients.txt
	uv pip compile --universal --generate-hashes --python-version 3.11 --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links requirements/patroni.in -o requirements/patroni.txt

# Of the npm package that carries WordPress, only what the tests of the WooCommerce plugin unpack.
WORDPRESS := @wp-playground/wordpress-builds@0.9.19
WORDPRESS_SHA512 := 765aaf87f3090e91395baf2f80f3ca523a62a7acccb81879f4bdc3d7c657fa9770bab0b8ab8c9dad3c30ff7b13315ebd0417281fa905f7762d02dba3342e4ca7
plugins/wordpress: Makefile
	@echo "Fetching WordPress for the tests of the WooCommerce plugin (once)…"
	@rm -rf $@ $@.part && mkdir $@.part
	@npm pack --silent --pack-destination $@.part $(WORDPRESS) >/dev/null
	@mv $@.part/*.tgz $@.part/package.tgz
	@echo "$(WORDPRESS_SHA512)  $@.part/package.tgz" | sha512sum --check --quiet
	@tar -xzf $@.part/package.tgz -C $@.part package/src/wordpress/wp-6.5.zip package/public/wp-6.5 \
	  package/src/sqlite-database-integration/sqlite-database-integration.zip
	@mv $@.part/package/src/wordpress/wp-6.5.zip $@.part/wordpress.zip
	@mv $@.part/package/src/sqlite-database-integration/sqlite-database-integration.zip $@.part/sqlite.zip
	@mv $@.part/package/public/wp-6.5 $@.part/public
	@rm -r $@.part/package.tgz $@.part/package
	@mv $@.part $@

clean:
	rm -rf .venv build dist clients/build clients/node_modules plugins/wordpress *.egg-info .mypy_cache .ruff_cache .pytest_cache

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Guichet needs Python 3.11 or later (make PYTHON=python3.12 …)")'
	@$(PYTHON) -m venv .venv && $(BIN)/python -m pip --version >/dev/null || { rm -rf .venv; \
	  echo "✗ $(PYTHON) cannot make a virtual environment with pip. Debian and Ubuntu have it in a package of its own:" \
	    "apt install python3-venv, then run make again." >&2; exit 1; }

.venv/runtime: .venv/bin/python requirements/runtime.txt pyproject.toml
	@echo "Installing Guichet into .venv (once)…"
	@touch $(UNFINISHED)
	@$(BIN)/pip install $(PIP_FLAGS) -r requirements/runtime.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -c "$(COMPILE_TEMPLATES)"
	@rm $(UNFINISHED)
	@touch $@

.venv/tracing: .venv/runtime requirements/tracing.txt
	@echo "Installing OpenTelemetry into .venv (once)…"
	$(call pip_install,requirements/tracing.txt)
	@touch $@

.venv/mcp: .venv/runtime requirements/mcp.txt
	@echo "Installing the Model Context Protocol into .venv (once)…"
	$(call pip_install,requirements/mcp.txt)
	@touch $@

.venv/dev: .venv/runtime requirements/dev.txt
	@echo "Installing the development tools into .venv (once)…"
	$(call pip_install,requirements/dev.txt)
	@touch $@

.venv/bench: .venv/dev requirements/bench.txt
	@echo "Installing what the bench compares with into .venv (once)…"
	$(call pip_install,requirements/bench.txt)
	@touch $@

.venv/clients: .venv/dev requirements/clients.txt
	@echo "Installing the generator of clients into .venv (once)…"
	$(call pip_install,requirements/clients.txt)
	@touch $@

clients/node_modules: clients/package-lock.json
	@echo "Installing the TypeScript tools and the linters into clients/node_modules (once)…"
	@npm ci --prefix clients --silent --no-audit --no-fund --ignore-scripts
	@touch $@
