# The commands of this repository. What each needs is set up on the way, and costs nothing when it is there already.
#   make run CXX=g++-12     another compiler        make run PYTHON=python3.12     another Python (3.10 or newer)

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup setup-test build run test test-cpp test-python test-asan test-tsan bench figures reference-simulators peers model lint lint-quick format mpich torch docs clean

export PYTHON JOBS TORCH
# Make's own default for CXX is no wish of the user's: without one, tools/find_compiler.sh looks for one that is new enough.
ifneq ($(origin CXX),default)
export CXX
endif
# Open MPI, which the tour and the tests compare with, refuses to start as root unless told twice, as in a container.
ifeq ($(shell id -u),0)
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
endif

ONEHOP := .venv/bin/onehop
CTEST := .venv/bin/ctest --output-on-failure --no-tests=error --parallel 2

help:  ## This list
	@sed -n 's/^\([a-z-]*\):.*##/\1 /p' $(MAKEFILE_LIST) | while read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

setup:  ## Python packages in .venv, and the system packages that have no other source
	@tools/setup.sh base mpi hwloc quantum

build: setup  ## The library and the Python extension
	@tools/build.sh release _core

run: build  ## Real work on two ranks, checked, against plain MPI
	@$(ONEHOP) tour -n 2

test: test-cpp test-python  ## All tests: ctest, then pytest

setup-test: ; @tools/setup.sh base mpi hwloc quantum gtest test

test-cpp: setup-test
	@tools/build.sh release
	@$(CTEST) --test-dir build/release

test-python: setup-test
	@tools/build.sh release _core
	@.venv/bin/pytest -m "not alone" --numprocesses 3 --dist worksteal
	@.venv/bin/pytest -m alone

test-asan: setup-test  ## The C++ tests under the address and undefined-behaviour sanitizers
	@tools/build.sh asan
	@$(CTEST) --preset asan

test-tsan: setup-test  ## The C++ tests whose ranks are threads, under the thread sanitizer
	@tools/build.sh tsan
	@$(CTEST) --preset tsan

bench: build reference-simulators  ## Every benchmark, about 15 minutes; tables here, JSON in results/
	@$(ONEHOP) bench all --results results

figures: build  ## The figures of README and docs, from results/ into docs/figures
	@$(ONEHOP) bench figures --results results --to docs/figures

reference-simulators: setup  ## Installs other circuit simulators in .reference-simulators, for `onehop bench circuits`
	@tools/setup.sh base reference-simulators

peers: reference-simulators  # the old name, until 0.3

model:  ## Explores the model of the channel protocol (SPIN)
	@tools/model.sh

lint: setup-test  ## Formatting, common mistakes, and dependencies between parts, in C++ and Python
	@tools/setup.sh lint
	@tools/lint.sh

lint-quick: setup-test  ## The same without clang-tidy
	@tools/setup.sh lint
	@tools/lint.sh --quick

format: setup  ## Rewrites the sources in the house format
	@tools/setup.sh lint
	@tools/lint.sh --fix

mpich:  ## MPICH beside Open MPI, in .mpich: `onehop bench ... --mpi mpich`
	@tools/setup.sh base
	@[ -x .mpich/bin/mpiexec ] || .venv/bin/pip install --quiet --quiet --ignore-installed --no-deps --prefix .mpich 'mpich>=4'

torch: setup  ## PyTorch (for the processor) in .venv, where there is none: `make test` then tests onehop.torch too
	@tools/setup.sh torch examples

docs: build  ## The documentation site in build/docs: Sphinx, with warnings as errors
	@tools/setup.sh docs
	@tools/docs.sh

clean:  ## Removes everything that was made here: .venv, .mpich, .reference-simulators, build, results
	@rm -rf .venv .mpich .reference-simulators .peers build results python/onehop/_core*.so
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
