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

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Choice off_or_on{"0", "1"};
constexpr Number rank_form{.whole = true, .high = 1 << 24};

constexpr std::array table{
    Variable{"ONEHOP_CIRCUIT", Text{"process number and file descriptor"}, "none",
             "The circuit that the parent process has parsed and shares with the ranks that it starts.",
             "python/onehop/quantum/run/serialization.py", "launcher"},
    Variable{"ONEHOP_CONTROL", Text{"path"}, "none",
             "The control memory through which the ranks of a launch find each other.", "src/world/world.cc",
             "launcher"},
    Variable{"ONEHOP_CUDA", Text{"path, or none"}, "`libcuda.so.1` where the system searches",
             "Path of the CUDA driver's library; none: use no card of this kind.", "src/device/driver.cc", "user"},
    Variable{"ONEHOP_DEVICE_CHECK", off_or_on, "1",
             "0: a card is used without the comparison of its kernels with the processor's at its first use.",
             "src/device/self_test.cc", "user"},
    Variable{"ONEHOP_DEVICE_IMAGE", Text{"path"}, "the images in the library",
             "The PTX, cubin or code object whose kernels cards run.", "src/device/card.cc", "test"},
    Variable{"ONEHOP_EMULATED_HOSTS", Text{"text"}, "none",
             "Describes the emulated hosts on which this rank runs, such as `hosts=2 per_host=2 rate=1gbit links=1`.",
             "bench/onehop_bench/hosts/launch.py", "launcher"},
    Variable{
        "ONEHOP_GUARD", off_or_on, "0",
        "1: plans watch the program between `start` and `finish`. If it touches there what the exchange writes, or "
        "writes what the exchange reads, `finish` raises `BadInput` and names the plan, the array and the element. "
        "For debugging: exchanges are slower, and never write straight into arrays.",
        "src/plan/guard/guard.cc", "user"},
    Variable{"ONEHOP_HIP", Text{"path, or none"}, "`libamdhip64.so` where the system searches",
             "Path of the HIP runtime's library; none: use no card of this kind.", "src/device/driver.cc", "user"},
    Variable{"ONEHOP_LATTICE_SAMPLES", Text{"path"}, "none",
             "A folder of gauge configurations written by other programs, as additional input for the reader tests.",
             "tests/lattice/test_files.py", "test"},
    Variable{"ONEHOP_LAUNCHER_PID",
             Number{.unit = "a process", .whole = true, .low = 1, .high = std::numeric_limits<std::int32_t>::max()},
             "none", "The process that started the ranks. A rank ends when this process is gone.", "src/world/world.cc",
             "launcher"},
    Variable{"ONEHOP_LAUNCHER_SPACE", Number{.unit = "a PID namespace", .whole = true, .low = 1}, "none",
             "The PID namespace of the process that started the ranks. A rank in another one cannot share memory with "
             "it.",
             "src/world/world.cc", "launcher"},
    Variable{"ONEHOP_LOGGOPSIM", Text{"path"}, "none",
             "A folder with the programs LogGOPSim and txt2bin, whose times a test compares with onehop's.",
             "tests/machine/test_goal.py", "test"},
    Variable{
        "ONEHOP_LONG_FAULTS", off_or_on, "0",
        "1: the tests of links that fail take the times of a real network: a link that is down for 5 s, ranks that "
        "are stopped for 10 s.",
        "tests/hosts/test_link_faults.py", "test"},
    Variable{"ONEHOP_MEETING_KEY", Text{"text"}, "empty",
             "A key that all ranks of a launch share. It is part of the name of the socket at which ranks meet under "
             "torchrun and srun without MPI, so that launches with different keys do not meet.",
             "src/group/rendezvous.cc", "user"},
    Variable{"ONEHOP_MPI", Text{"path, or none"},
             "the launcher's library, then that of `mpiexec` in `PATH`, then the system's",
             "Path of the MPI library (`libmpi.so`) to load; none: use no MPI. A library that the process has already "
             "loaded comes first.",
             "src/mpi/library.cc", "user"},
    Variable{"ONEHOP_NETWORK", Choice{"auto", "mpi", "ucx"}, "auto",
             "The transport between hosts for groups made from MPI: auto and mpi use MPI, ucx uses UCX. Groups made "
             "without MPI use UCX. Must be the same on all ranks.",
             "src/group/make_group.cc", "user"},
    Variable{"ONEHOP_PEERS", Text{"path"}, "that of `make reference-simulators`, if there is one",
             "The Python interpreter of an environment with other circuit simulators, for `onehop bench circuits`.",
             "bench/onehop_bench/reference_simulators/__init__.py", "user"},
    Variable{"ONEHOP_PMIX", Text{"path, or none"},
             "beside the launcher, then in the Python environment, then the system's",
             "Path of the PMIx library (`libpmix.so.2`) through which ranks without MPI meet under prterun and srun; "
             "none: use no PMIx.",
             "src/pmix/library.cc", "user"},
    Variable{"ONEHOP_QASM_MEMORY_MIB", Number{.unit = "MiB", .above = true}, "16384",
             "Maximum memory of a circuit that is read.", "python/onehop/quantum/io/qasm_limits.py", "user"},
    Variable{"ONEHOP_QASM_OPERATIONS", Number{.whole = true, .above = true, .exponent = true}, "10000000",
             "Maximum number of operations in a circuit, after loops and gate definitions are expanded.",
             "python/onehop/quantum/io/qasm_limits.py", "user"},
    Variable{"ONEHOP_QASM_SECONDS", Number{.unit = "seconds", .high = 1e9, .above = true}, "600",
             "Time limit for reading a circuit.", "python/onehop/quantum/io/qasm_limits.py", "user"},
    Variable{"ONEHOP_QSPI_TOGETHER", off_or_on, "0",
             "For programs on the drop-in interface for qspi. 1: the program always starts all messages of a "
             "`qspi_prepare` before it waits for any of them, so that the messages to one rank travel together.",
             "compat/qspi.cc", "user"},
    Variable{
        "ONEHOP_RAILS", Text{"auto, none, or interfaces"}, "auto",
        "The network interfaces that share the messages of a rank to other hosts, over UCX without RDMA. auto: those "
        "on networks that all ranks have and that are at least half as fast as the fastest; none: UCX chooses one. "
        "Interfaces are separated by commas, such as `eth0,eth1`; every rank names as many, in the same order of "
        "networks.",
        "src/ucx/interfaces.cc", "user"},
    Variable{"ONEHOP_RANK", rank_form, "none", "The rank of this process within the launch.", "src/world/world.cc",
             "launcher"},
    Variable{"ONEHOP_RANKS", rank_form, "none", "The number of ranks of the launch.", "src/world/world.cc", "launcher"},
    Variable{"ONEHOP_RESTARTED", Choice{"1"}, "none",
             "This process is a rank of a command that has restarted itself with several ranks.",
             "python/onehop/launch/environment.py", "launcher"},
    Variable{"ONEHOP_SHARE_BUFFERS", off_or_on, "1",
             "0: senders of the drop-in interface for rdma_comlib do not write into the program's receive buffers.",
             "compat/rdma_comlib/shared_pages.cc", "user"},
    Variable{
        "ONEHOP_SILENCE", Number{.unit = "seconds", .high = infinity}, "20",
        "Over UCX, a rank on another host from which nothing arrives for so long counts as lost, though it sends a "
        "sign of life every half second. 0: never.",
        "src/ucx/connections.cc", "user"},
    Variable{"ONEHOP_SIMD", Choice{"portable", "avx2", "avx512"}, "the best that the processor supports",
             "The instruction set of all kernels.", "src/base/cpu.cc", "user"},
    Variable{"ONEHOP_TEST_FREE_MEMORY", Number{.unit = "bytes", .whole = true}, "the amount that the system reports",
             "Overrides the free memory of the machine.", "src/base/memory_left.cc", "test"},
    Variable{"ONEHOP_TEST_HOST", Text{"text"}, "the machine's own name",
             "Overrides the name of the machine. Ranks with different names share no memory.",
             "src/group/make_group.cc", "test"},
    Variable{"ONEHOP_TEST_MARK", Text{"text"}, "none",
             "Marks the processes that a test starts, so that the test can find any that were left behind.",
             "tests/support/ranks.py", "test"},
    Variable{"ONEHOP_TEST_MPI_TAGS", Number{.whole = true, .above = true, .exponent = true}, "that of the MPI library",
             "Lowers the largest tag of messages over MPI.", "src/mpi/mpi_wire.h", "test"},
    Variable{"ONEHOP_THREADS", Number{.whole = true, .low = 1, .high = max_threads},
             "the cores that the rank may use, divided by the number of ranks that share them",
             "Number of threads of each rank in circuit simulations and lattice operators.", "src/base/thread_count.cc",
             "user"},
    Variable{"ONEHOP_TIMEOUT", Number{.unit = "seconds", .high = infinity}, "0",
             "Time limit of every wait for another rank, and the default of `group.timeout`. A rank that waits longer "
             "raises `Timeout`. 0: no limit. While a group is made under torchrun or srun without MPI, ranks wait "
             "for each other for one minute unless this variable sets another limit.",
             "src/group/liveness.cc", "user"},
    Variable{"ONEHOP_TRACE", Text{"path"}, "none",
             "The file that gets the time line of the run of all ranks; see `onehop trace`. The same on all ranks.",
             "src/base/trace.cc", "user"},
    Variable{"ONEHOP_TRACEBACK", off_or_on, "0",
             "1: a command that fails prints Python's traceback before its error message.",
             "python/onehop/cli/failure.py", "user"},
    Variable{"ONEHOP_TRAP", Text{"path"}, "none", "The file to which the trap of a test writes.",
             "tests/cli/test_foreign_folder.py", "test"},
    Variable{"ONEHOP_TUNING", Text{"path"}, "`onehop/tuning.json` in `$XDG_CACHE_HOME`, or in `~/.cache`",
             "The file with the tuning of this machine, which `onehop tune` writes.", "src/channel/tuning.cc", "user"},
    Variable{"ONEHOP_UCX", Text{"path, or none"},
             "that beside the MPI library, then that of the Python environment, then the "
             "system's",
             "Path of the UCX library (`libucp.so.0`) to load; none: use no UCX. A library that the process has "
             "already loaded comes first.",
             "src/ucx/library.cc", "user"},
    Variable{"ONEHOP_UCX_MODE", Choice{"auto", "messages", "puts"}, "auto",
             "How UCX carries messages: active messages, or puts into the receiver's slots. auto: puts where all hosts "
             "have a network that writes into remote memory (InfiniBand, RoCE).",
             "src/ucx/ucx_transport.cc", "user"},
    Variable{"ONEHOP_VERIFY", off_or_on, "0",
             "1: making a plan verifies its schedule first, and raises `BadInput` for what `onehop.verify` refuses.",
             "src/plan/program/plan_program.cc", "user"},
};

template <class Value>
std::optional<Value> parsed(std::string_view text) {
  Value value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string number_text(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  const std::string written(text.data(), end);
  return written.ends_with("e+09") ? written.substr(0, written.size() - 3) + "9" : written;
}

std::string prose(const Number& form) {
  const bool is_bounded = form.high < largest;
  std::string text = form.whole && form.unit.empty() && !is_bounded ? "whole number" : "number";
  if (!form.unit.empty()) text += " of " + std::string(form.unit);
  if (form.above) {
    return text + " above " + number_text(form.low) + (is_bounded ? ", at most " + number_text(form.high) : "");
  }
  if (is_bounded) return text + " from " + number_text(form.low) + " to " + number_text(form.high);
  return text + ", " + number_text(form.low) + " or more";
}

std::string prose(const Choice& choice) {
  std::string text;
  for (std::size_t i = 0; i < choice.words.size() && !choice.words[i].empty(); ++i) {
    const bool is_last = i + 1 == choice.words.size() || choice.words[i + 1].empty();
    text += (i == 0 ? "" : is_last ? " or " : ", ") + std::string(choice.words[i]);
  }
  return text;
}

std::optional<double> number_in(std::string_view text, const Number& form) {
  if (form.whole && !form.exponent && !parsed<std::int64_t>(text)) return std::nullopt;
  const std::optional<double> number = parsed<double>(text);
  if (form.whole && number && std::trunc(*number) != *number) return std::nullopt;
  // A comparison with NaN is false.
  if (!number || !(*number >= form.low && *number <= form.high)) return std::nullopt;
  if (form.above && *number == form.low) return std::nullopt;
  return number;
}

std::optional<double> number_of(const std::string& name, const Number& form) {
  const std::optional<std::string> value = text(name);
  if (!value) return std::nullopt;
  const std::optional<double> number = number_in(*value, form);
  if (!number) throw BadInput(name + ": expected a " + prose(form) + ", found '" + *value + "'");
  return number;
}

// The value of a variable that is one of several words; none if it is unset.
std::optional<std::string> word_of(const std::string& name, const Choice& choice) {
  std::optional<std::string> value = text(name);
  if (value && std::ranges::find(choice.words, *value) == choice.words.end()) {
    throw BadInput(name + ": expected " + prose(choice) + ", found '" + *value + "'");
  }
  return value;
}

const Variable& variable_of(std::string_view name) {
  const auto* const found = std::ranges::find(table, name, &Variable::name);
  if (found == table.end()) throw BadInput("expected an environment variable of onehop, found " + std::string(name));
  return *found;
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
  if (variable != table.end()) {
    if (const auto* const form = std::get_if<Number>(&variable->values)) return number_of(std::string(name), *form);
    const auto* const choice = std::get_if<Choice>(&variable->values);
    if (choice != nullptr && parsed<double>(choice->words[0])) {
      const std::optional<std::string> word = word_of(std::string(name), *choice);
      return word ? parsed<double>(*word) : std::nullopt;
    }
  }
  throw BadInput("expected an environment variable that is a number, found " + std::string(name));
}

std::string choice(std::string_view name) {
  const Variable& variable = variable_of(name);
  return word_of(std::string(name), std::get<Choice>(variable.values)).value_or(std::string(variable.default_value));
}

std::string words(const Values& values) {
  if (const auto* const form = std::get_if<Number>(&values)) return prose(*form);
  if (const auto* const choice = std::get_if<Choice>(&values)) return prose(*choice);
  return std::string(std::get<Text>(values).what);
}

void check() {
  for (const Variable& each : table) {
    const std::string name(each.name);
    if (const auto* const form = std::get_if<Number>(&each.values)) static_cast<void>(number_of(name, *form));
    if (const auto* const choice = std::get_if<Choice>(&each.values)) static_cast<void>(word_of(name, *choice));
  }
  static_cast<void>(cpu::level());
}

}  // namespace onehop::env
