#include "src/base/env.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <system_error>

#include "onehop/error.h"
#include "src/base/cpu.h"

namespace onehop::env {
namespace {

constexpr std::array table{
    Variable{"ONEHOP_CIRCUIT", "process number and file descriptor", "none",
             "The circuit that the parent process has parsed and shares with the ranks that it starts.",
             "python/onehop/quantum/run/serialization.py", "launcher"},
    Variable{"ONEHOP_CONTROL", "path", "none",
             "The control memory through which the ranks of a launch find each other.", "src/world/world.cc",
             "launcher"},
    Variable{"ONEHOP_EMULATED_HOSTS", "text", "none",
             "Describes the emulated hosts on which this rank runs, such as `hosts=2 per_host=2 rate=1gbit links=1`.",
             "bench/onehop_bench/hosts/launch.py", "launcher"},
    Variable{
        "ONEHOP_GUARD", "0 or 1", "0",
        "1: plans watch the program between `start` and `finish`. If it touches there what the exchange writes, or "
        "writes what the exchange reads, `finish` raises `BadInput` and names the plan, the array and the element. "
        "For debugging: exchanges are slower, and never write straight into arrays.",
        "src/plan/guard.cc", "user"},
    Variable{"ONEHOP_LATTICE_SAMPLES", "path", "none",
             "A folder of gauge configurations written by other programs, as additional input for the reader tests.",
             "tests/lattice/test_files.py", "test"},
    Variable{"ONEHOP_LAUNCHER_PID", "process number", "none",
             "The process that started the ranks. A rank ends when this process is gone.", "src/world/world.cc",
             "launcher"},
    Variable{"ONEHOP_LAUNCHER_SPACE", "number of a PID namespace", "none",
             "The PID namespace of the process that started the ranks. A rank in another one cannot share memory with "
             "it.",
             "src/world/world.cc", "launcher"},
    Variable{"ONEHOP_LOGGOPSIM", "path", "none",
             "A folder with the programs LogGOPSim and txt2bin, whose times a test compares with onehop's.",
             "tests/machine/test_goal.py", "test"},
    Variable{
        "ONEHOP_LONG_FAULTS", "0 or 1", "0",
        "1: the tests of links that fail take the times of a real network: a link that is down for 5 s, ranks that "
        "are stopped for 10 s.",
        "tests/hosts/test_link_faults.py", "test"},
    Variable{"ONEHOP_MEETING_KEY", "text", "empty",
             "A key that all ranks of a launch share. It is part of the name of the socket at which ranks meet under "
             "torchrun and srun without MPI, so that launches with different keys do not meet.",
             "src/group/rendezvous.cc", "user"},
    Variable{"ONEHOP_MPI", "path, or none",
             "the launcher's library, then that of `mpiexec` in `PATH`, then the system's",
             "Path of the MPI library (`libmpi.so`) to load; none: use no MPI. A library that the process has already "
             "loaded comes first.",
             "src/mpi/library.cc", "user"},
    Variable{"ONEHOP_NETWORK", "auto, mpi or ucx", "auto",
             "The transport between hosts for groups made from MPI: auto and mpi use MPI, ucx uses UCX. Groups made "
             "without MPI use UCX. Must be the same on all ranks.",
             "src/group/make_group.cc", "user"},
    Variable{"ONEHOP_PEERS", "path", "that of `make reference-simulators`, if there is one",
             "The Python interpreter of an environment with other circuit simulators, for `onehop bench circuits`.",
             "bench/onehop_bench/reference_simulators/__init__.py", "user"},
    Variable{"ONEHOP_PMIX", "path, or none", "beside the launcher, then in the Python environment, then the system's",
             "Path of the PMIx library (`libpmix.so.2`) through which ranks without MPI meet under prterun and srun; "
             "none: use no PMIx.",
             "src/pmix/library.cc", "user"},
    Variable{"ONEHOP_QASM_MEMORY_MIB", "number of MiB above 0", "16384",
             "Limit of the address space of the process that reads a circuit from a file.",
             "python/onehop/quantum/io/qasm_limits.py", "user"},
    Variable{"ONEHOP_QASM_OPERATIONS", "whole number above 0", "10000000",
             "Maximum number of operations in a circuit, after loops and gate definitions are expanded.",
             "python/onehop/quantum/io/qasm_limits.py", "user"},
    Variable{"ONEHOP_QASM_SECONDS", "number of seconds above 0, at most 1e9", "600",
             "Time limit for reading a circuit.", "python/onehop/quantum/io/qasm_limits.py", "user"},
    Variable{"ONEHOP_QSPI_TOGETHER", "0 or 1", "0",
             "For programs on the drop-in interface for qspi. 1: the program always starts all messages of a "
             "`qspi_prepare` before it waits for any of them, so that the messages to one rank travel together.",
             "compat/qspi.cc", "user"},
    Variable{
        "ONEHOP_RAILS", "auto, none, or interfaces", "auto",
        "The network interfaces that share the messages of a rank to other hosts, over UCX without RDMA. auto: those "
        "on networks that all ranks have and that are at least half as fast as the fastest; none: UCX chooses one. "
        "Interfaces are separated by commas, such as `eth0,eth1`; every rank names as many, in the same order of "
        "networks.",
        "src/ucx/interfaces.cc", "user"},
    Variable{"ONEHOP_RANK", "number from 0 to 16777216", "none", "The rank of this process within the launch.",
             "src/world/world.cc", "launcher"},
    Variable{"ONEHOP_RANKS", "number from 0 to 16777216", "none", "The number of ranks of the launch.",
             "src/world/world.cc", "launcher"},
    Variable{"ONEHOP_RESTARTED", "1", "none",
             "This process is a rank of a command that has restarted itself with several ranks.",
             "python/onehop/launch/environment.py", "launcher"},
    Variable{"ONEHOP_SHARE_BUFFERS", "0 or 1", "1",
             "0: senders of the drop-in interface for rdma_comlib do not write into the program's receive buffers.",
             "compat/rdma_comlib/shared_pages.cc", "user"},
    Variable{
        "ONEHOP_SILENCE", "number of seconds, 0 or more", "20",
        "Over UCX, a rank on another host from which nothing arrives for so long counts as lost, though it sends a "
        "sign of life every half second. 0: never.",
        "src/ucx/connections.cc", "user"},
    Variable{"ONEHOP_SIMD", "portable, avx2 or avx512", "the best that the processor supports",
             "The instruction set of all kernels.", "src/base/cpu.cc", "user"},
    Variable{"ONEHOP_TEST_FREE_MEMORY", "number of bytes", "the amount that the system reports",
             "Overrides the free memory of the machine.", "src/group/memory_left.cc", "test"},
    Variable{"ONEHOP_TEST_HOST", "text", "the machine's own name",
             "Overrides the name of the machine. Ranks with different names share no memory.",
             "src/group/make_group.cc", "test"},
    Variable{"ONEHOP_TEST_MARK", "text", "none",
             "Marks the processes that a test starts, so that the test can find any that were left behind.",
             "tests/support/ranks.py", "test"},
    Variable{"ONEHOP_TEST_MPI_TAGS", "whole number above 0", "that of the MPI library",
             "Lowers the largest tag of messages over MPI.", "src/mpi/mpi_wire.h", "test"},
    Variable{"ONEHOP_THREADS", "number from 1 to 1024",
             "the cores that the rank may use, divided by the number of ranks that share them",
             "Number of threads of each rank in circuit simulations and lattice operators.", "src/base/env.cc", "user"},
    Variable{"ONEHOP_TIMEOUT", "number of seconds, 0 or more", "0",
             "Time limit of every wait for another rank, and the default of `group.timeout`. A rank that waits longer "
             "raises `Timeout`. 0: no limit. While a group is made under torchrun or srun without MPI, ranks wait "
             "for each other for one minute unless this variable sets another limit.",
             "src/group/liveness.cc", "user"},
    Variable{"ONEHOP_TRACEBACK", "0 or 1", "0",
             "1: a command that fails prints Python's traceback before its error message.",
             "python/onehop/cli/failure.py", "user"},
    Variable{"ONEHOP_TRAP", "path", "none", "The file to which the trap of a test writes.",
             "tests/cli/test_foreign_folder.py", "test"},
    Variable{"ONEHOP_TUNING", "path", "`onehop/tuning.json` in `$XDG_CACHE_HOME`, or in `~/.cache`",
             "The file with the tuning of this machine, which `onehop tune` writes.", "src/channel/tuning.cc", "user"},
    Variable{"ONEHOP_UCX", "path, or none",
             "that beside the MPI library, then that of the Python environment, then the "
             "system's",
             "Path of the UCX library (`libucp.so.0`) to load; none: use no UCX. A library that the process has "
             "already loaded comes first.",
             "src/ucx/library.cc", "user"},
    Variable{"ONEHOP_UCX_MODE", "auto, messages or puts", "auto",
             "How UCX carries messages: active messages, or puts into the receiver's slots. auto: puts where all hosts "
             "have a network that writes into remote memory (InfiniBand, RoCE).",
             "src/ucx/ucx_transport.cc", "user"},
    Variable{"ONEHOP_VERIFY", "0 or 1", "0",
             "1: making a plan verifies its schedule first, and raises `BadInput` for what `onehop.verify` refuses.",
             "src/plan/plan_program.cc", "user"},
};

// The forms of values that are numbers, by their words in the table.
struct Form {
  std::string_view values;
  bool whole = false;
  double low = 0;
  double high = 0;
  bool above_low = false;  // `low` itself is not accepted
  bool exponent = false;   // a whole number may be written as 1e7
};
constexpr double largest = std::numeric_limits<double>::max();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Form rank_form{"number from 0 to 16777216", true, 0, 1 << 24};
constexpr std::array forms{
    Form{"0 or 1", true, 0, 1},
    Form{"1", true, 1, 1},
    rank_form,
    Form{"number from 1 to 1024", true, 1, max_threads},
    Form{"number of MiB above 0", false, 0, largest, true},
    Form{"number of a PID namespace", true, 1, largest},
    Form{"number of bytes", true, 0, largest},
    Form{"number of seconds above 0, at most 1e9", false, 0, 1e9, true},
    Form{"number of seconds, 0 or more", false, 0, infinity},
    Form{"process number", true, 1, std::numeric_limits<std::int32_t>::max()},
    Form{"whole number above 0", true, 1, largest, false, true},
};
// One of several words.
constexpr std::array<std::string_view, 2> choices{"auto, messages or puts", "auto, mpi or ucx"};
// All other values: names, which cpu::level() checks, and texts and paths, whose readers know what is wrong with them.
constexpr std::array<std::string_view, 6> other_values{
    "auto, none, or interfaces",          "path", "path, or none", "portable, avx2 or avx512",
    "process number and file descriptor", "text"};

constexpr const Form* form_of(std::string_view values) {
  const auto* const found = std::ranges::find(forms, values, &Form::values);
  return found == forms.end() ? nullptr : &*found;
}
static_assert(std::ranges::all_of(table, [](const Variable& each) {
  return form_of(each.values) != nullptr || std::ranges::count(choices, each.values) == 1 ||
         std::ranges::count(other_values, each.values) == 1;
}));

template <class Number>
std::optional<Number> parsed(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<double> number_in(std::string_view text, const Form& form) {
  if (form.whole && !form.exponent && !parsed<std::int64_t>(text)) return std::nullopt;
  const std::optional<double> number = parsed<double>(text);
  if (form.whole && number && std::trunc(*number) != *number) return std::nullopt;
  // A comparison with NaN is false.
  if (!number || !(*number >= form.low && *number <= form.high)) return std::nullopt;
  if (form.above_low && *number == form.low) return std::nullopt;
  return number;
}

std::optional<double> number_of(const std::string& name, const Form& form) {
  const std::optional<std::string> value = text(name);
  if (!value) return std::nullopt;
  const std::optional<double> number = number_in(*value, form);
  if (!number) {
    const bool is_noun = form.values.front() > '9';
    throw BadInput(name + ": expected " + (is_noun ? "a " : "") + std::string(form.values) + ", found '" + *value +
                   "'");
  }
  return number;
}

std::string choice_of(const Variable& variable) {
  const std::string value = text(std::string(variable.name)).value_or(std::string(variable.default_value));
  std::string_view rest = variable.values;
  while (!rest.empty()) {
    const auto end = std::min({rest.find(", "), rest.find(" or "), rest.size()});
    if (rest.substr(0, end) == value) return value;
    rest.remove_prefix(std::min(rest.size(), end + (rest.substr(end).starts_with(", ") ? 2 : 4)));
  }
  throw BadInput(std::string(variable.name) + ": expected " + std::string(variable.values) + ", found '" + value + "'");
}

}  // namespace

std::span<const Variable> variables() noexcept { return table; }

std::optional<std::string> text(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<int> rank_number(const std::string& name) {
  const std::optional<double> found = number_of(name, rank_form);
  return found ? std::optional(static_cast<int>(*found)) : std::nullopt;
}

std::optional<double> number(std::string_view name) {
  const auto* const variable = std::ranges::find(table, name, &Variable::name);
  const Form* const form = variable == table.end() ? nullptr : form_of(variable->values);
  if (form == nullptr) throw BadInput("expected an environment variable that is a number, found " + std::string(name));
  return number_of(std::string(name), *form);
}

std::optional<int> threads() {
  const std::optional<double> found = number("ONEHOP_THREADS");
  return found ? std::optional(static_cast<int>(*found)) : std::nullopt;
}

std::string choice(std::string_view name) {
  const auto* const variable = std::ranges::find(table, name, &Variable::name);
  if (variable == table.end()) throw BadInput("expected an environment variable of onehop, found " + std::string(name));
  return choice_of(*variable);
}

void check() {
  static_cast<void>(cpu::level());
  for (const Variable& each : table) {
    if (std::ranges::count(choices, each.values) == 1) static_cast<void>(choice_of(each));
    if (const Form* const form = form_of(each.values)) static_cast<void>(number_of(std::string(each.name), *form));
  }
}

}  // namespace onehop::env
