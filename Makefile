# Each target sets up its virtual environment on the first call.
#
#   make dqn ROM=pong        train Double-DQN on a game, Breakout by default (ARGS="--algo DQN" to add flags)
#   make learn ROM=pong.bin  train with --preset fast, draw the curve beside published ones (SEED=2 for another run)
#   make tensorboard         show the curves of all runs in train_log (ARGS="--logdir DIR" for others)
#   make test                the fast tests                    (ARGS="-k queue" goes to pytest)
#   make test-slow           the tests that take minutes
#   make nightly             all tests that CI leaves out, on both TensorFlows (.ci/run makes .venv-tf1), and make versions
#   make versions            the README's script and a short DQN training on TensorFlow 2.16, 2.18 and 2.21
#   make reliability         the fault matrix on one TensorFlow (up to an hour)
#   make soak                kill a small DQN 200 times at random moments, a group of four as often, and more (80 minutes)
#   make bench               measure all figures of docs/performance.md (ARGS="--only R5,R6"; an hour and a half)
#   make gpu-check           what only a GPU can show, as one table, in .venv-gpu (20 minutes, see docs/performance.md)
#   make bench-peers         install the peers of some benchmarks, each in a .venv-peer-*
#   make release             build sdist and wheel, try both as users install them (7 minutes)
#   make lint                format, lint, types, public names
#   make names               regenerate the tables of public names
#   make docs                build the site of docs/ into build/docs
#   make notebooks           make a notebook of the first tutorial in build/notebooks
#   make pictures            draw the pictures of docs/augmentors.md
#
#   make dqn EXTRAS=gpu,atari VENV=.venv-gpu      with the GPU build of TensorFlow
#   make dqn PYTHON=/usr/bin/python3.12           with a Python of your choice

VENV ?= .venv
GPU_VENV ?= .venv-gpu
EXTRAS ?= tf,atari
PYTHON ?=
ARGS ?=

ROM ?= breakout.bin
SEED ?= 1
GAME = $(basename $(notdir $(ROM)))
LEARN = train_log/fast-$(GAME)-$(SEED)
PUBLISHED = $(if $(shell grep '"$(GAME)":' examples/DeepQNetwork/published.json),--published $(GAME) --table)

.PHONY: help dqn learn tensorboard test test-slow nightly versions reliability soak bench gpu-check bench-peers release lint names docs notebooks pictures clean

help:
	@sed -n 's/^#   //p' Makefile

dqn:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS)"
	"$(VENV)/bin/python" examples/DeepQNetwork/DQN.py --rom "$(ROM)" $(ARGS)

learn:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS),plot"
	"$(VENV)/bin/python" examples/DeepQNetwork/DQN.py --rom "$(ROM)" --preset fast --seed $(SEED) \
		--logdir $(LEARN) --resume auto $(ARGS)
	"$(VENV)/bin/python" examples/DeepQNetwork/plot_scores.py fast=$(LEARN) --rom "$(ROM)" --preset fast $(PUBLISHED) \
		--out $(LEARN)/scores.svg

tensorboard:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS),tensorboard"
	"$(VENV)/bin/tensorboard" --logdir train_log $(ARGS)

test:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS),test"
	@VENV="$(VENV)" scripts/test $(ARGS)

test-slow:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS),test"
	@VENV="$(VENV)" scripts/test -m slow $(ARGS)

nightly:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS),test,notebooks,tutorials"
	@test -x .venv-tf1/bin/python || { echo "make nightly needs the environments of .ci/run" >&2; exit 1; }
	@status=0; SAMPLE=1 VENV="$(VENV)" scripts/test -m nightly || status=1; \
		VENV=.venv-tf1 scripts/test -m nightly || status=1; scripts/versions || status=1; exit $$status

versions:
	@scripts/versions

reliability:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS),test"
	@VENV="$(VENV)" scripts/test -m fault_row $(ARGS)

soak:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS),test"
	@TENSORPACK_SOAK_KILLS="$${TENSORPACK_SOAK_KILLS:-200}" VENV="$(VENV)" scripts/test -s -m "slow or soak" \
		tests/faults/test_soak.py $(ARGS)
	@TENSORPACK_GROUP_KILLS="$${TENSORPACK_GROUP_KILLS:-200}" VENV="$(VENV)" scripts/test -s -m slow \
		tests/groups/test_soak.py $(ARGS)
	@VENV="$(VENV)" scripts/test -m soak $(ARGS)

bench:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS)"
	"$(VENV)/bin/python" benchmarks/run.py $(ARGS)

gpu-check:
	@VENV="$(GPU_VENV)" PYTHON="$(PYTHON)" scripts/install gpu,atari,test
	"$(GPU_VENV)/bin/python" benchmarks/gpu_check.py $(ARGS)

bench-peers:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS)"
	@PYTHON="$(VENV)/bin/python" scripts/bench_peers

release:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS),test"
	@scripts/release

lint:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS),test"
	@VENV="$(VENV)" scripts/check

names:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS),test"
	"$(VENV)/bin/python" scripts/public_names

docs:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS),docs"
	@"$(VENV)/bin/python" -c "import sphinx" 2>/dev/null || \
		{ echo "make docs needs Python 3.11: make docs VENV=.venv-docs PYTHON=python3.11" >&2; exit 1; }
	"$(VENV)/bin/python" -m sphinx -W --keep-going -a -n -q -j auto -d build/doctrees docs build/docs $(ARGS)
	@if command -v node >/dev/null; then scripts/search; else echo "without node, the search is not tried"; fi
	@echo "the site begins at build/docs/index.html"

notebooks:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS),notebooks"
	"$(VENV)/bin/python" docs/make_notebook.py build/notebooks $(ARGS)

pictures:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS),test"
	"$(VENV)/bin/python" docs/draw_augmentors.py

clean:
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
