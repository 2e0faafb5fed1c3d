# Two commands do everything on a fresh machine: `make run` and `make test`. Both begin with `make setup`.
SHELL := /bin/sh
PYTHON ?= python3
PY := .venv/bin/python
PORT ?= 8000
export REPRISE_HOME ?= $(CURDIR)/var

.PHONY: setup run test bench fuzz lint lock clean

setup:  ## .venv, pinned requirements, Node, the built viewer
	@PYTHON="$(PYTHON)" .ci/setup requirements.txt

run: setup  ## serve the demo on this machine; prints one URL
	@.ci/serve "$(PORT)"

test: setup  ## linters, types, unit tests and browser tests
	@PYTHON="$(PYTHON)" .ci/setup requirements-dev.txt
	@.ci/browser
	@$(MAKE) --no-print-directory lint
	@.ci/npm test
	$(PY) -m pytest -q -n 2 --dist loadfile

lint:
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check -q .
	@.venv/bin/mypy
	@.venv/bin/lint-imports --no-cache > .import-lint.log 2>&1 || { cat .import-lint.log; exit 1; }
	@rm -f .import-lint.log
	@.ci/npm run check

bench: setup  ## measure; compares side by side in one run
	@PYTHON="$(PYTHON)" .ci/setup requirements-dev.txt
	$(PY) -m tests.bench

FUZZ_SECONDS ?= 120
fuzz: setup  ## attack the archive import and every parser, so many seconds each
	@PYTHON="$(PYTHON)" .ci/setup requirements-dev.txt
	@PYTHON="$(PYTHON)" .ci/setup requirements-fuzz.txt
	@for target in archive cassette parsers protocol transcript secrets; do \
	    $(PY) -m tests.fuzz $$target -max_total_time=$(FUZZ_SECONDS) || exit 1; done

lock:  ## pin what the .in files ask for
	.venv/bin/pip-compile -q --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links -o requirements.txt requirements.in
	.venv/bin/pip-compile -q --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links -o requirements-dev.txt requirements-dev.in
	.venv/bin/pip-compile -q --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links -o requirements-node.txt requirements-node.in
	.venv/bin/pip-compile -q --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links -o requirements-fuzz.txt requirements-fuzz.in

clean:
	rm -rf .venv node_modules static/dist staticfiles
