#include "onehop/quantum/placement.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/complex.h>

#include "onehop/error.h"
#include "onehop/quantum/state.h"
#include "python/bindings/bindings.h"
#include "python/bindings/quantum_profile.h"

using onehop::quantum::Circuit;
using onehop::quantum::MemoryNeed;
using onehop::quantum::Placement;
using onehop::quantum::PlacementOptions;
using onehop::quantum::Precision;
using onehop::quantum::Stage;

namespace {

Precision precision_from(const std::string& name) {
  if (name == "single") return Precision::single_precision;
  if (name == "double") return Precision::double_precision;
  throw onehop::BadInput("expected the precision 'single' or 'double', found '" + name + "'");
}

}  // namespace

void bind_quantum_placement(nb::module_& module) {
  nb::class_<Stage>(module, "Stage",
                    "An exchange between ranks (or none), and operations that every rank does by itself.")
      .def_prop_ro(
          "swaps",
          [](const Stage& s) {
            nb::list list;
            for (const auto& [local, remote] : s.swaps) list.append(nb::make_tuple(local, remote));
            return nb::tuple(list);
          },
          nb::sig("def swaps(self) -> tuple[tuple[int, int], ...]"),
          "The exchange before it: pairs of a local bit and a bit of the rank's number.")
      .def_prop_ro(
          "bits", [](const Stage& s) { return as_tuple(s.bits); }, nb::sig("def bits(self) -> tuple[int, ...]"),
          "The bit of each wire after the exchange.")
      .def_prop_ro(
          "operations", [](const Stage& s) { return as_tuple(s.operations); },
          nb::sig("def operations(self) -> tuple[int, ...]"), "Operations of the circuit, in the order of execution.")
      .def_prop_ro(
          "fraction_moved", [](const Stage& s) { return Placement::fraction_moved(s); },
          "Of a rank's amplitudes, in the exchange.");
  nb::class_<Placement>(module, "Placement", "Which qubits are local when.")
      .def_ro("qubits", &Placement::qubits)
      .def_ro("ranks", &Placement::ranks)
      .def_ro("local_bits", &Placement::local_bits)
      .def_ro("bytes_per_amplitude", &Placement::bytes_per_amplitude)
      .def_prop_ro(
          "wires", [](const Placement& p) { return as_tuple(p.wires); }, nb::sig("def wires(self) -> tuple[int, ...]"),
          "The wire that is each qubit at the end.")
      .def_prop_ro(
          "first_bits", [](const Placement& p) { return as_tuple(p.first_bits); },
          nb::sig("def first_bits(self) -> tuple[int, ...]"), "Where each wire lies at the beginning.")
      .def_prop_ro(
          "stages", [](const Placement& p) { return as_tuple(p.stages); },
          nb::sig("def stages(self) -> tuple[Stage, ...]"))
      .def_prop_ro("exchanges", &Placement::exchanges)
      .def_prop_ro("fraction_moved", [](const Placement& p) { return p.fraction_moved(); })
      .def_prop_ro("bytes_per_rank", [](const Placement& p) { return p.bytes_per_rank(); })
      .def_prop_ro(
          "baselines",
          [](const Placement& p) {
            nb::dict d;
            d["gate_by_gate"] = p.baselines.gate_by_gate;
            d["one_swap_at_a_time"] = p.baselines.one_swap_at_a_time;
            d["lazy_swaps"] = p.baselines.lazy_swaps;
            return d;
          },
          nb::sig("def baselines(self) -> dict[str, float]"), "What other rules would move, as fractions.")
      .def(
          "groups",
          [](const Placement& p) {
            const auto groups = [&] {
              const nb::gil_scoped_release released;
              return p.groups();
            }();
            nb::list stages;
            for (const auto& stage : groups) {
              nb::list passes;
              for (const auto& pass : stage) passes.append(pass_dict(pass));
              stages.append(passes);
            }
            return stages;
          },
          nb::sig("def groups(self) -> list[list[dict[str, Any]]]"),
          "Of each stage: what the engine does together, a pass over the amplitudes of rank 0 each.")
      .def("passes", &Placement::passes, nb::call_guard<nb::gil_scoped_release>());
  module.def(
      "place",
      [](const Circuit& circuit, int ranks, int bytes_per_amplitude, double search_seconds, std::vector<int> bits) {
        PlacementOptions options;
        options.bytes_per_amplitude = bytes_per_amplitude;
        options.search_seconds = search_seconds;
        options.bits = std::move(bits);
        return onehop::quantum::place(circuit, ranks, options);
      },
      "circuit"_a, "ranks"_a, "bytes_per_amplitude"_a, "search_seconds"_a, "bits"_a = std::vector<int>(),
      nb::call_guard<nb::gil_scoped_release>());
  module.def("usable_ranks", &onehop::quantum::usable_ranks, "circuit"_a, "ranks"_a);
  nb::class_<MemoryNeed>(module, "MemoryNeed", "What a state needs and what there is, in bytes.")
      .def_ro("per_rank", &MemoryNeed::per_rank)
      .def_ro("in_all", &MemoryNeed::in_all)
      .def_ro("here", &MemoryNeed::here, "Of the ranks on this machine.")
      .def_ro("available", &MemoryNeed::available, "To the ranks of this machine together.")
      .def_prop_ro("fits", &MemoryNeed::fits);
  module.def(
      "memory_need",
      [](int qubits, int ranks, const std::string& precision, int ranks_here) {
        return onehop::quantum::memory_need(qubits, ranks, precision_from(precision), ranks_here);
      },
      "qubits"_a, "ranks"_a, "precision"_a, "ranks_here"_a);
}
