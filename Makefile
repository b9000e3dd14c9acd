# Overnight. `make run` shows it at work, `make test` proves it. Both create what they need.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENV ?= CartPole-v1
HOURS ?= 8
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help run night test check bench bench-mujoco bench-page bench-sandbox bench-search nights peers speed soak soak-nights features system reference changelog wheel clean learning parity

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=…"; exit 1; }
	@for one in git ssh-keygen bwrap tmux; do command -v $$one >/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && $(MAKE) --no-print-directory system || \
		echo "$$one is missing: without git nothing works, without the others tests of signatures, of tier T3 and of terminals are skipped"; break; }; done
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { $(MAKE) --no-print-directory system && $(PYTHON) -m venv --clear $(VENV); }
	@echo "installing into $(VENV) …"
	@$(BIN)/python -m pip install -qq --constraint constraints.txt --editable '.[rl,dev]'
	@touch $@

run: $(VENV)/.ready ## run the main job on an embedded default: a four-minute night on CartPole-v1, and its report
	@rm -rf build/first-night && mkdir -p build/first-night
	@$(BIN)/overnight start CartPole-v1 --env-steps 15000 --hours 0.05 --candidates 12 --plants --yes --dir build/first-night

night: $(VENV)/.ready ## enter the loop: make night ENV=CartPole-v1 HOURS=8
	@mkdir -p build/night && $(BIN)/overnight start "$(ENV)" --hours "$(HOURS)" --dir build/night

test: check ## every check that CI runs, in under 12 minutes on 2 cores
	@$(BIN)/python -m pytest -q -n 4 --dist loadfile --no-loadscope-reorder

check: $(VENV)/.ready ## format, lint, types, generated pages
	@$(BIN)/ruff format --check --quiet src tests tools benchmarks
	@$(BIN)/ruff check --quiet src tests tools benchmarks
	@$(BIN)/mypy
	@$(BIN)/python tools/reference.py --check
	@$(BIN)/python tools/changelog.py --check
	@$(BIN)/python tools/features.py > /dev/null

bench: $(VENV)/.ready peers ## the ledger, then our PPO beside its peers: about 100 minutes on an idle machine, goes on where it was stopped
	@$(BIN)/python benchmarks/ledger.py
	@$(BIN)/python benchmarks/bench.py
	@$(BIN)/python benchmarks/page.py

bench-mujoco: $(VENV)/.ready ## our PPO on MuJoCo for twelve minutes a run: two and a half hours, goes on where it was stopped
	@$(BIN)/python benchmarks/bench.py mujoco
	@$(BIN)/python benchmarks/page.py

bench-page: $(VENV)/.ready ## write benchmarks/RESULTS.md from what was measured
	@$(BIN)/python benchmarks/page.py

peers: build/peers/.ready ## install the peers into an environment of their own, build/peers/.venv

build/peers/.ready: benchmarks/peers/requirements.txt
	@mkdir -p build/peers && $(PYTHON) -m venv --clear build/peers/.venv
	@echo "installing the peers into build/peers/.venv …"
	@build/peers/.venv/bin/python -m pip install -qq --no-deps --only-binary :all: --requirement $< || \
		{ echo "torch's CPU build is needed: set PIP_EXTRA_INDEX_URL to PyTorch's index of CPU wheels, or PIP_FIND_LINKS to a folder with it"; exit 1; }
	@touch $@

bench-sandbox: $(VENV)/.ready ## measure isolation: the start of each tier, and evaluation across the trust line
	@$(BIN)/python benchmarks/sandbox.py

bench-search: $(VENV)/.ready ## the search beside TPE, random search and keep-or-revert at equal steps: under 100 minutes, goes on where it was stopped
	@$(BIN)/python benchmarks/search.py

nights: $(VENV)/.ready ## whole nights without anybody, warm, cold and on an unknown environment, and their worth elsewhere: eight hours
	@$(BIN)/python benchmarks/unattended.py

speed: $(VENV)/.ready ## measure the built-in trainers: steps a second, ms an update, where the time goes
	@$(BIN)/python benchmarks/trainers.py

learning: $(VENV)/.ready ## how well the trainers learn in a given time, five seeds each; goes on where it was stopped
	@$(BIN)/python benchmarks/learning.py

parity: $(VENV)/.ready ## whether policies trained in EnvPool score the same in Gymnasium: a quarter of an hour, goes on where it was stopped
	@$(BIN)/python benchmarks/parity.py

soak-nights: $(VENV)/.ready ## ten real nights in which nothing helps and ten with a planted win; goes on where it stopped
	@OVERNIGHT_SOAK=1 $(BIN)/python -m pytest -q -p no:xdist tests/flow/test_soak_nights.py

soak: soak-nights ## the long checks: real nights, many more crash states, kills and simulated studies
	@OVERNIGHT_SOAK=1 $(BIN)/python -m pytest -q -n 2 tests/study tests/fuzz tests/simulate tests/flow tests/attack tests/adversary/test_trainer_cheaters.py tests/sandbox/test_soak.py

features: $(VENV)/.ready ## rows of the feature list: proved, refused, open
	@$(BIN)/python tools/features.py --open

reference: $(VENV)/.ready ## generate docs/reference from the code
	@$(BIN)/python tools/reference.py

changelog: ## build CHANGELOG.md from changes/
	@$(PYTHON) tools/changelog.py

wheel: $(VENV)/.ready ## build the wheel into dist/
	@$(BIN)/python -m build --wheel --outdir dist >/dev/null && ls dist

system: ## install the Debian packages that are needed (as root)
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq git openssh-client python3-venv bubblewrap tmux >/dev/null; \
	else echo "needed: git and Python's venv module; wanted: bubblewrap, openssh-client, tmux; for example: sudo apt-get install git python3-venv bubblewrap openssh-client tmux"; exit 1; fi

clean: ## remove what was built
	@rm -rf build dist $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
