# Each target does its own set-up in a virtual environment; a second call installs nothing.
#
#   make dqn                 train Double-DQN on Breakout      (ARGS="--algo DQN" to add flags)
#   make test                the fast tests                    (ARGS="-k queue" goes to pytest)
#   make test-slow           the tests that take minutes
#   make lint                format, lint, types, public names
#   make names               write the tables of public names anew
#
#   make dqn EXTRAS=gpu,atari VENV=.venv-gpu      with the GPU build of TensorFlow
#   make dqn PYTHON=/usr/bin/python3.12           with a Python of your choice

VENV ?= .venv
EXTRAS ?= tf,atari
PYTHON ?=
ARGS ?=

.PHONY: help dqn test test-slow lint names clean

help:
	@sed -n 's/^#   //p' Makefile

dqn:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS)"
	"$(VENV)/bin/python" examples/DeepQNetwork/DQN.py --rom breakout.bin $(ARGS)

test:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS),test"
	@VENV="$(VENV)" scripts/test $(ARGS)

test-slow:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS),test"
	@VENV="$(VENV)" scripts/test -m slow $(ARGS)

lint:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS),test"
	@VENV="$(VENV)" scripts/check

names:
	@VENV="$(VENV)" PYTHON="$(PYTHON)" scripts/install "$(EXTRAS),test"
	"$(VENV)/bin/python" scripts/public_names

clean:
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
