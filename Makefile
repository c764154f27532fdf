# The commands of this repository. Each installs what it needs, unless it is installed already.
#   make run CXX=g++-12     another compiler        make run PYTHON=python3.12     another Python (3.10 or newer)

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup setup-test build run test test-cpp test-python test-asan test-tsan fuzz soak soak-broken wheels wheel-test wheel-test-aarch64 release-check device bench figures reference-simulators peers model lint lint-quick format mpich impi torch setup-torch setup-interfaces docs clean

export PYTHON JOBS TORCH
# Do not export make's own default of CXX: without CXX, tools/find_compiler.sh looks for a compiler that is new enough.
ifneq ($(origin CXX),default)
export CXX
endif
# Open MPI, which the tour and the tests use, needs these two variables to start as root, as in a container.
ifeq ($(shell id -u),0)
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
endif

ONEHOP := .venv/bin/onehop
# Many tests wait rather than compute, so there are more of them at a time than cores. A process of pytest starts up to 8 ranks.
CTEST_JOBS := $(shell echo $$(($$(nproc) + 1)))
PYTEST_JOBS := $(shell jobs=$$((2 * $$(nproc) + 1)); echo $$((jobs < 17 ? jobs : 17)))
# With more to do than cores, a test can break a time limit by chance. Such a test runs once more: in ctest after a timeout, in
# pytest after any failure, then with nothing beside it. The output names it both times.
CTEST := .venv/bin/ctest --output-on-failure --no-tests=error --parallel $(CTEST_JOBS) --repeat after-timeout:2
PYTEST := .venv/bin/pytest
PYTEST_AGAIN := { [ $$? -eq 1 ] && echo 'onehop: the tests that failed run once more, one at a time' && $(PYTEST) --last-failed; }

help:  ## Print this list
	@sed -n 's/^\([a-z0-9-]*\):.*##/\1 /p' $(MAKEFILE_LIST) | while read -r name text; do printf '  make %-18s %s\n' "$$name" "$$text"; done

setup:  ## Install Python packages in .venv, and the system packages that have no other source
	@tools/setup.sh base mpi quantum

build: setup  ## Build the library, the Python extension and that of the benchmarks
	@tools/build.sh release _core

run: build  ## Run the tour on two ranks: checked computations, compared with plain MPI
	@$(ONEHOP) tour -n 2

test: test-cpp test-python  ## Run all tests: ctest, then pytest

setup-test: ; @tools/setup.sh base mpi quantum lattice gtest test

test-cpp: setup-test
	@tools/build.sh release
	@$(CTEST) --test-dir build/release

test-python: setup-test
	@tools/build.sh release _core
	@$(PYTEST) -m "not alone" --numprocesses $(PYTEST_JOBS) --dist worksteal || $(PYTEST_AGAIN)
	@$(PYTEST) -m alone || $(PYTEST_AGAIN)

test-asan: setup-test  ## Run the C++ tests under the address and undefined-behaviour sanitizers
	@tools/build.sh asan
	@$(CTEST) --preset asan

test-tsan: setup-test  ## Run the C++ tests whose ranks are threads under the thread sanitizer
	@tools/build.sh tsan
	@$(CTEST) --preset tsan

# The seconds that each target of `make fuzz` runs; SEED repeats a run, and FUZZ_JOBS targets run at once (2). The
# name SECONDS is make's: every shell sets SECONDS itself.
fuzz: setup-test  ## Fuzz every reader of files for SECONDS=60 each; findings in build/fuzz-findings
	@tools/build.sh release _core
	@tools/setup.sh fuzz
	@tools/fuzz.sh --seconds $(if $(filter command,$(firstword $(origin SECONDS))),$(SECONDS),60) --seed $(or $(SEED),0) $(if $(FUZZ_JOBS),--jobs $(FUZZ_JOBS))

soak: setup-test  ## Run random trials with faults for HOURS=1; counts go to build/soak-counts.jsonl
	@tools/build.sh release onehop_soak
	@tools/build.sh release _core
	@.venv/bin/python tests/soak/soak.py --hours $(or $(HOURS),1)

soak-broken: setup-test  ## Break the sources in the ways of tests/soak/faults.py and show that the soak finds each, about 15 minutes
	@.venv/bin/python tests/soak/broken.py

wheels:  ## Build manylinux wheels and the sdist in build/wheels/dist (WHEELS="x86_64 sdist")
	@tools/wheels.sh $(or $(WHEELS),x86_64 sdist)

wheel-test:  ## Install the wheel in a bare Debian without compiler and use it there (needs root)
	@tools/wheel_test.sh

wheel-test-aarch64:  ## The same with the wheel for aarch64 under qemu-user, and C++ tests (needs root)
	@tools/wheels.sh aarch64-tests
	@tools/wheel_test.sh trixie aarch64

release-check:  ## Go through the checklist of a release
	@tools/release.sh

device: setup  ## Compile the kernels for CUDA and ROCm into build/device; the next build embeds them
	@tools/setup.sh device
	@.venv/bin/python tools/device.py

bench: build reference-simulators  ## Run every benchmark (15 minutes), print the tables and write JSON to results/
	@$(ONEHOP) bench all --results results

figures: build  ## Draw figures in build/figures: of benchmarks from the JSON in results/, and of papers
	@.venv/bin/python tools/draw_layers.py docs/figures/layers.svg
	@$(ONEHOP) bench papers --to build/figures
	@$(ONEHOP) bench figures --results results --to build/figures

reference-simulators: setup  ## Install other circuit simulators in .reference-simulators, for `onehop bench circuits`
	@tools/setup.sh base reference-simulators

peers: reference-simulators  # the old name, until 0.3

model:  ## Explore the model of the channel protocol with SPIN
	@tools/model.sh

lint: setup-test  ## Check formatting, common mistakes and dependencies between parts, in C++ and Python
	@tools/setup.sh lint
	@tools/lint.sh

lint-quick: setup-test  ## Run the checks of lint without clang-tidy
	@tools/setup.sh lint
	@tools/lint.sh --quick

format: setup  ## Rewrite the sources in the house format
	@tools/setup.sh lint
	@tools/lint.sh --fix

mpich:  ## Install MPICH beside Open MPI in .mpich, for `onehop bench ... --mpi mpich`
	@tools/setup.sh base
	@[ -x .mpich/bin/mpiexec ] || .venv/bin/pip install --quiet --quiet --ignore-installed --no-deps --prefix .mpich 'mpich>=4'

# From 2021.19 on libfabric comes in a package of its own.
impi:  ## Install Intel MPI beside Open MPI in .impi, for tests between hosts
	@tools/setup.sh base
	@[ -x .impi/bin/mpiexec ] || .venv/bin/pip install --quiet --quiet --ignore-installed --no-deps --prefix .impi 'impi-rt<2021.19'

torch: setup-torch build  ## Install PyTorch and run its own tests of torch.distributed with onehop beside gloo, about 6 minutes
	@.venv/bin/python tools/torch_suite.py

setup-torch: setup  ## Install PyTorch in .venv unless it is there; `make test` then also tests onehop.torch
	@tools/setup.sh torch examples torch-tests

setup-interfaces: setup-test  ## Install Cirq, PennyLane, pytket, Aer, stim, PyTorch (CPU), ziglang, gfortran and bubblewrap; `make test` then skips less
	@tools/setup.sh base clifford interfaces torch-cpu device gfortran bubblewrap

docs: build  ## Build the documentation site in build/docs
	@tools/setup.sh docs
	@tools/docs.sh

clean:  ## Remove everything that make has made: .venv, .mpich, .impi, .reference-simulators, build, results
	@rm -rf .venv .mpich .impi .reference-simulators .peers build results python/onehop/_core*.so python/onehop/_*.pyi bench/onehop_bench/_native*.so
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
