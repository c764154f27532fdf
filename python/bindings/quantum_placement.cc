#include "onehop/quantum/placement.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>

#include "onehop/quantum/simulator.h"
#include "python/bindings/quantum_arrays.h"
#include "python/bindings/quantum_profile.h"
#include "quantum/simulator/circuit_cache.h"
#include "quantum/state/stored_amplitudes.h"

using onehop::quantum::Circuit;
using onehop::quantum::MemoryNeed;
using onehop::quantum::Placement;
using onehop::quantum::PlacementOptions;
using onehop::quantum::Stage;

namespace {

PlacementOptions options_of(double bytes_per_amplitude, double search_seconds, std::vector<int> bits,
                            int ranks_per_host) {
  PlacementOptions options;
  options.ranks_per_host = ranks_per_host;
  options.bytes_per_amplitude = bytes_per_amplitude;
  options.search_seconds = search_seconds;
  options.bits = std::move(bits);
  return options;
}

void bind_place(nb::module_& module) {
  module.def(
      "place_simulation",
      [](const Circuit& circuit, int ranks, double bytes_per_amplitude, double search_seconds, int ranks_per_host) {
        return place_simulation(circuit, ranks, options_of(bytes_per_amplitude, search_seconds, {}, ranks_per_host));
      },
      "circuit"_a, "ranks"_a, "bytes_per_amplitude"_a, "search_seconds"_a, "ranks_per_host"_a = 0,
      nb::call_guard<nb::gil_scoped_release>(),
      "Return the placement with which `simulate` runs a circuit of `stored_circuits`.\n\n"
      "`simulate` does not place the circuit again as long as the placement lives. Raises BadInput if the number of "
      "ranks is no power of two or too large.");
  module.def(
      "stored_circuits",
      [](const Circuit& circuit, bool divide, int largest, const std::vector<onehop::quantum::PauliSum>& observables) {
        return onehop::quantum::stored_circuits(circuit, divide, largest, observables);
      },
      "circuit"_a, "divide"_a = true, "largest"_a = 62, "observables"_a = std::vector<onehop::quantum::PauliSum>(),
      "Return the parts of a validated circuit that no operation joins, without final measurements.\n\n"
      "Each has a state of its own when the circuit runs; idle qubits are in none. Without `divide` they are one part, "
      "which is what a run with a checkpoint has. `largest` is the number of qubits of the largest state that fits.");
  module.def(
      "largest_state",
      [](int ranks, const std::string& precision, int ranks_per_node) {
        return onehop::quantum::largest_state(ranks, precision_from(precision), ranks_per_node);
      },
      "ranks"_a, "precision"_a, "ranks_per_node"_a,
      "Return the number of qubits of the largest state that the physical memory of this machine can hold.");
  module.def(
      "place_applied",
      [](const Circuit& circuit, int ranks, double bytes_per_amplitude, double search_seconds, std::vector<int> bits,
         int ranks_per_host) {
        const auto options = options_of(bytes_per_amplitude, search_seconds, std::move(bits), ranks_per_host);
        return placement_of(compile_cached(circuit, ranks, options, false));
      },
      "circuit"_a, "ranks"_a, "bytes_per_amplitude"_a, "search_seconds"_a, "bits"_a, "ranks_per_host"_a = 0,
      nb::call_guard<nb::gil_scoped_release>(),
      "Return the placement with which `State.apply` applies a circuit to a state with these bits.\n\n"
      "`State.apply` does not place the circuit again as long as the placement lives. Raises BadInput as "
      "`place_simulation` does.");
  module.def(
      "circuit_cache_counters",
      [] {
        const auto counters = onehop::quantum::circuit_cache_counters();
        return std::pair(counters.placed, counters.found);
      },
      "Return how many circuits this process has placed for runs, and how often it has found a placement again.");
}

}  // namespace

void bind_quantum_placement(nb::module_& module) {
  nb::class_<Stage>(module, "Stage",
                    "A stage of a placement: an exchange between ranks (or none), then operations on local amplitudes.")
      .def_prop_ro(
          "swaps", tuple_of(&Stage::swaps),
          "Exchange that begins the stage: pairs of a local bit and a bit of the rank number. Empty: no exchange.")
      .def_prop_ro("bits", tuple_of(&Stage::bits), "Bit of each wire after the exchange.")
      .def_prop_ro("operations", tuple_of(&Stage::operations),
                   "Indices of the circuit's operations in the order of execution.")
      .def_prop_ro(
          "fraction_moved", [](const Stage& s) { return Placement::fraction_moved(s); },
          "Fraction of a rank's amplitudes that it sends in the exchange.");
  nb::class_<Placement>(
      module, "Placement",
      "The execution of a circuit in stages: which qubits are local, and when.\n\n"
      "Stages refer to wires: wire w begins as qubit w, and swaps of the circuit rename wires instead of "
      "moving data.")
      .def_ro("qubits", &Placement::qubits, "Number of qubits.")
      .def_ro("ranks", &Placement::ranks, "Number of ranks.")
      .def_ro("local_bits", &Placement::local_bits, "Number of bits of an amplitude's place within a rank.")
      .def_ro("bytes_per_amplitude", &Placement::bytes_per_amplitude, "Bytes of an amplitude.")
      .def_prop_ro("wires", tuple_of(&Placement::wires), "Wire of each qubit at the end.")
      .def_prop_ro("stages", tuple_of(&Placement::stages), "Stages in the order of execution.")
      .def_prop_ro("exchanges", &Placement::exchanges, "Number of exchanges between ranks.")
      .def_prop_ro(
          "fraction_moved", [](const Placement& p) { return p.fraction_moved(); },
          "Fraction of a rank's amplitudes that it sends, summed over all exchanges.")
      .def_prop_ro(
          "bytes_per_rank", [](const Placement& p) { return p.bytes_per_rank(); },
          "Bytes that each rank sends in all exchanges.")
      .def(
          "bytes_by_level",
          [](const Placement& p, const std::vector<int>& units) { return as_tuple(p.bytes_by_level(units)); },
          "units"_a,
          "Divide `bytes_per_rank` by the outermost border that the bytes cross.\n\n"
          "Parameters\n----------\n"
          "units : sequence of int\n    Ranks in a unit of each level, powers of two in ascending order. Ranks fill "
          "the units one after the other.\n\n"
          "Returns\n-------\n"
          "tuple of int\n    Bytes inside a unit of units[0] ranks, beyond it but inside a unit of units[1] ranks, "
          "..., beyond all units.\n\n"
          "Raises\n------\n"
          "BadInput\n    The units are no powers of two, or not in ascending order.")
      .def_prop_ro(
          "baselines",
          [](const Placement& p) {
            nb::dict d;
            d["gate_by_gate"] = p.baselines.gate_by_gate;
            d["one_swap_at_a_time"] = p.baselines.one_swap_at_a_time;
            d["lazy_swaps"] = p.baselines.lazy_swaps;
            return d;
          },
          nb::sig("def baselines(self) -> dict[str, float]"),
          "Fractions of a rank's amplitudes that simpler strategies would send: gate_by_gate, one_swap_at_a_time and "
          "lazy_swaps.")
      .def(
          "groups",
          [](const Placement& p, int rank, bool on_device) {
            const auto groups = [&] {
              const nb::gil_scoped_release released;
              return p.groups(rank, on_device);
            }();
            nb::list stages;
            for (const auto& stage : groups) {
              nb::list passes;
              for (const auto& pass : stage) passes.append(pass_dict(pass));
              stages.append(passes);
            }
            return stages;
          },
          nb::sig("def groups(self, rank: int = 0, on_device: bool = False) -> list[list[dict[str, Any]]]"),
          "rank"_a = 0, "on_device"_a = false,
          "List for each stage the passes that the engine, or that of devices, makes over the amplitudes of a rank, as "
          "dictionaries.")
      .def("exchanges_at_least", &Placement::exchanges_at_least, nb::call_guard<nb::gil_scoped_release>(),
           "Return a number of exchanges that no placement of these operations can go below.")
      .def("passes_at_least", &Placement::passes_at_least, nb::call_guard<nb::gil_scoped_release>(),
           "Return a number of passes of rank 0 that no choice of tiles can go below with these stages.")
      .def("passes", &Placement::passes, nb::call_guard<nb::gil_scoped_release>(),
           "Count the passes that the engine makes over the amplitudes of rank 0 in all stages.");
  bind_place(module);
  module.def("usable_ranks", &onehop::quantum::usable_ranks, "circuit"_a, "ranks"_a,
             "Return the largest power of two, at most `ranks`, over which the state of a circuit can be split.");
  nb::class_<MemoryNeed>(module, "MemoryNeed", "The memory that a state needs and the available memory, in bytes.")
      .def_ro("per_rank", &MemoryNeed::per_rank, "Bytes of the amplitudes and staging of one rank.")
      .def_ro("in_all", &MemoryNeed::in_all, "Bytes that all ranks need.")
      .def_ro("here", &MemoryNeed::here, "Bytes that the ranks on this machine need.")
      .def_ro("available", &MemoryNeed::available, "Bytes available to the ranks on this machine together.")
      .def_prop_ro("fits", &MemoryNeed::fits, "Whether the available memory suffices.");
  module.def(
      "memory_need",
      [](int qubits, int ranks, const std::string& precision, int ranks_per_node) {
        return onehop::quantum::memory_need(qubits, ranks, precision_from(precision), ranks_per_node);
      },
      "qubits"_a, "ranks"_a, "precision"_a, "ranks_per_node"_a,
      "Compute the memory need of a state on `ranks` ranks, `ranks_per_node` of which share this machine. `precision` "
      "is one that a simulation takes. Not collective.");
  module.def(
      "disk_passes",
      [](const Placement& placement, const std::string& precision, std::int64_t memory) {
        const auto tiles = disk_tiles(precision_from(precision), placement.local_bits, memory);
        return tiles.needed < tiles.smallest ? -1 : placement.passes_on_disk(tiles.tile_bits, tiles.low_bits);
      },
      "placement"_a, "precision"_a, "memory"_a,
      "Return the passes over a state in a file, of which so many bytes of memory hold a part; -1: too few.");
  module.def(
      "bytes_per_amplitude",
      [](const std::string& precision) { return bytes_per_amplitude(precision_from(precision)); }, "precision"_a,
      "Return the bytes of an amplitude in a precision.");
}
