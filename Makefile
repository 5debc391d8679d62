# Every target is a command that a person can run; `make help` lists them.
PYTHON := .venv/bin/python
HIL := .venv/bin/hil
# whole files on each of four processes, which wait half of their time (tests/turns.py); a test that hangs names itself
# (pytest-embedded brings 40 fixtures to each test, which take four fifths of what pytest itself takes)
SIDE_BY_SIDE := -p no:pytest_embedded --numprocesses 4 --dist loadfile --no-loadscope-reorder --durations 10 --timeout 600
# what is started a thousand times is compiled once, whatever the environment asks for, as images of containers do
unexport PYTHONDONTWRITEBYTECODE
C_FILES = $(shell find firmware hil tests tools -type d \( -name build -o -name managed_components \) -prune \
	-o -name '*.[ch]' -print)

.PHONY: help hil demo report test test-docs test-fast test-all size conformance emulated-check examples-check idf-check lint compiled format bench cost-check bench-gate bench-gate-rack bench-ledger bench-leases bench-nights bench-rack bench-report chaos faults-check fuzz soak soak-rack audit sanitize screenshots lock clean uninstall

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 17

hil: ## try it without hardware: build, flash, measure and judge on a virtual rack
	@.ci/bootstrap run
	@HIL_UNDECIDED_STATUS=0 $(HIL) run --rack hil/racks/virtual.yaml --suite first

demo: ## a simulated history with changes planted in it, and the report that finds them: out/demo/report
	@.ci/bootstrap test
	@$(PYTHON) -m tools.demo

report: ## build the report of the newest run again: out/report
	@.ci/bootstrap run
	@$(HIL) report build

test: ## everything that proves the harness, 8 to 12 minutes on two cores; of what is heavy, one smoke each
	@.ci/bootstrap test
	@$(MAKE) --no-print-directory --jobs 2 lint compiled
	@$(PYTHON) -m pytest $(SIDE_BY_SIDE) -m "not heavy"

test-docs: ## links and commands of the pages, in seconds
	@.ci/bootstrap python
	@$(PYTHON) -m pytest --noconftest tests/test_docs_links.py tests/cli/test_cli.py::test_the_commands_in_the_docs_are_commands

test-fast: ## what needs neither rack nor firmware nor browser, in a minute on two cores
	@.ci/bootstrap test
	@$(PYTHON) -m pytest $(SIDE_BY_SIDE) -m "not heavy and not slow"

test-all: ## all tests, the heavy ones too: the workflows under act, every browser size, each bench target's short pass
	@.ci/bootstrap test
	@$(MAKE) --no-print-directory --jobs 2 lint compiled
	@$(PYTHON) -m pytest $(SIDE_BY_SIDE)

size: ## print lines, commands, options and words beside what is allowed; write each lower number
	@.ci/bootstrap test
	@$(PYTHON) -m tools.size

conformance: ## FreeRTOS's scheduling rules on the host's kernel, on ESP-IDF's where IDF_PATH is set, and on an emulated chip (FIRMWARE=DIR)
	@.ci/bootstrap test
	@$(PYTHON) -m tools.conformance

emulated-check: ## check a chip's own image in an emulator: EMULATOR=NAME; FIRMWARE=DIR, else built with ESP-IDF; BASE=DIR (some 15 minutes)
	@.ci/bootstrap test
	@$(PYTHON) -m tools.emulated_check

examples-check: ## build ESP-IDF's own examples for the host, unchanged, and compare what they print (IDF_PATH)
	@.ci/bootstrap test
	@$(PYTHON) -m tools.examples_check

idf-check: ## check the firmware and host/idf against the ESP-IDF of IDF_PATH
	@.ci/bootstrap test
	@$(PYTHON) -m tools.idf_check

lint: ## formats, lint, types, the words of the pages
	@$(PYTHON) -m ruff format --check --quiet .
	@$(PYTHON) -m ruff check --quiet .
	@$(PYTHON) -m mypy --no-error-summary
	@$(PYTHON) -m tools.prose --check
	@test -n "$(firstword $(C_FILES))" || { echo "lint: no C source found"; exit 1; }
	@.venv/bin/clang-format --style=file:firmware/.clang-format --dry-run --Werror $(C_FILES)

# else each process of a first run compiles all tests (26 s where one takes 12 s); what cannot be read, the tests say
compiled:
	@$(PYTHON) -m pytest -p no:pytest_embedded --collect-only --quiet > /dev/null 2>&1 || true

format: ## put the sources into the one format
	@$(PYTHON) -m ruff format --quiet .
	@$(PYTHON) -m ruff check --fix --quiet .
	@.venv/bin/clang-format --style=file:firmware/.clang-format -i $(C_FILES)

bench: ## print the figures of rack and harness, each beside its aim (some 17 minutes; tools.bench --list names them)
	@.ci/bootstrap test
	@$(PYTHON) -m tools.bench

cost-check: ## plant instructions in a chip's image, and changes that cost nothing (ESP-IDF and QEMU; ten minutes and more)
	@.ci/bootstrap test
	@$(PYTHON) -m tools.cost_check

bench-gate: ## simulate pull requests for the gate to judge: false blocks, power, attacks (minutes)
	@.ci/bootstrap test
	@$(PYTHON) -m tools.gate_simulation

bench-gate-rack: ## try the gate by real runs on the virtual rack, noise simulated (hours; goes on where it stopped)
	@.ci/bootstrap test
	@$(PYTHON) -m tools.bench.gate_rack --judgements 100

bench-ledger: ## lose messages at each of six points, and see whether the ledger names the owner (minutes)
	@.ci/bootstrap test
	@$(PYTHON) -m tools.bench.loss_ledger

bench-leases: ## race for leased boards 1,000 times, with runs, keepers, exporters and coordinator killed (ten minutes)
	@.ci/bootstrap test
	@$(PYTHON) -m tools.bench.lease_race

bench-nights: ## simulate nights: false alarms, what is found, after how many nights (minutes)
	@.ci/bootstrap test
	@$(PYTHON) -m tools.night_simulation
	@$(PYTHON) -m tools.demo --seeds 20

bench-rack: ## plan a night on 32 boards of two racks, beside first come, first served (two minutes)
	@.ci/bootstrap test
	@$(PYTHON) -m tools.bench.rack

bench-report: ## time the report: a year of nights, 10,000 results, pages in Chromium (minutes)
	@.ci/bootstrap test
	@$(PYTHON) -m tools.bench.report

SEED := 1
chaos: ## break everything on the virtual rack, SEED=n: whose fault does each run say it was (an hour; goes on where it stopped)
	@.ci/bootstrap test
	@$(PYTHON) -m tools.chaos --seed $(SEED) $(CHAOS)

faults-check: ## plant some sixty faults in the product, each alone, and see whether a test fails (an hour and more)
	@.ci/bootstrap test
	@$(PYTHON) -m tools.planted_faults map
	@$(PYTHON) -m tools.planted_faults try

SECONDS := 10
fuzz: ## fuzz every reader of what others write for SECONDS=n each, guided by coverage (two minutes; the corpus stays in out/fuzz)
	@.ci/bootstrap test
	@$(PYTHON) -m tools.fuzz --seconds $(SECONDS) $(FUZZ)

MINUTES := 120
soak: ## run four virtual boards again and again for MINUTES=120, and see whether memory, descriptors, threads or disk grow
	@.ci/bootstrap test
	@$(PYTHON) -m tools.soak --minutes $(MINUTES)

soak-rack: ## the same for 14 days on the boards of RACK=FILE
	@.ci/bootstrap test
	@$(PYTHON) -m tools.soak --minutes 20160 --rack $(RACK)

audit: ## look up what the lock files pin among known vulnerabilities (asks PyPI and npm)
	@.ci/bootstrap test
	@failed=0; for lock in requirements*.lock tests/*.lock; do echo "$$lock"; \
		.venv/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off -r "$$lock" || failed=1; done; \
	echo reports/site/package-lock.json; npm --prefix reports/site audit --package-lock-only --audit-level=high || failed=1; exit $$failed

sanitize: ## measure the suite pr with firmware and air built with ASan and UBSan, then with TSan (minutes)
	@.ci/bootstrap test
	@$(PYTHON) -m tools.sanitize $(SANITIZE)

screenshots: ## make the pictures in docs/img anew, and in out/screenshots every page at four sizes
	@.ci/bootstrap test
	@$(PYTHON) -m tools.screenshots
	@$(PYTHON) -m tools.terminal_picture
	@$(PYTHON) -m tools.comment_page --to docs/img
	@$(PYTHON) -m tools.gallery

LOCKS := requirements requirements-plan requirements-build requirements-nodeps requirements-release tests/requirements tests/labgrid
lock: ## pin the requirements*.in anew, for each supported Python (needs the network and uv)
	@for lock in $(LOCKS); do \
		case $$lock in requirements-plan | requirements-build | tests/requirements) more="--constraint requirements.lock" ;; \
			requirements-nodeps) more=--no-deps ;; *) more="" ;; esac; \
		uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-package colorama \
			--custom-compile-command "make lock" $$more --output-file $$lock.lock $$lock.in || exit 1; done # colorama: Windows

clean: ## remove builds and results; out/history stays
	@if [ -d out ]; then find out -mindepth 1 -maxdepth 1 ! -name history -exec rm -rf {} +; fi

uninstall: ## remove what `make hil` and `make test` made: environment, builds, results
	@if [ -s .venv/installed-packages ]; then \
		echo "Debian packages that were installed for this project; to remove them too:"; \
		echo "  apt-get remove $$(sort -u .venv/installed-packages | tr '\n' ' ')"; fi
	@rm -rf .venv out reports/site/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
