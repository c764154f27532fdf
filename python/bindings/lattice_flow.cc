#include "onehop/lattice/flow.h"

#include <nanobind/stl/complex.h>

#include "python/bindings/bindings.h"

using onehop::lattice::FieldStrength;
using onehop::lattice::Flow;
using onehop::lattice::Gauge;

namespace {

template <class Measure>
nb::tuple measured(Measure&& measure) {
  FieldStrength found;
  {
    const nb::gil_scoped_release released;
    found = measure();
  }
  return nb::make_tuple(found.energy_plaquette, found.energy_clover, found.charge);
}

}  // namespace

void bind_lattice_flow(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  module.def(
      "lattice_field_strength",
      [](const Gauge& gauge) { return measured([&] { return onehop::lattice::field_strength(gauge); }); }, "gauge"_a,
      nb::sig("def lattice_field_strength(gauge: LatticeGauge) -> tuple[float, float, float]"),
      "Energy by plaquettes and by clover leaves, topological charge. Collective.");
  module.def("lattice_polyakov_loop", &onehop::lattice::polyakov_loop, "gauge"_a, release(),
             "The average of tr / 3 of the product of all links in time. Collective.");
  module.def("longest_stable_flow_step", &onehop::lattice::longest_stable_flow_step, "dims"_a,
             "The longest step of the flow that is stable on smooth fields.");
  nb::class_<Flow>(module, "LatticeFlow", "The gradient flow of a gauge field by the Wilson action.")
      .def(nb::init<const Gauge&>(), "gauge"_a, release())
      .def_prop_ro("time", &Flow::time, "How far it has flowed.")
      .def("step", &Flow::step, "epsilon"_a, release(), "One step. Collective.")
      .def("try_step", &Flow::try_step, "epsilon"_a, "tolerance"_a, release(),
           "One step, if its error is at most the tolerance; otherwise nothing changes. Returns the error. Collective.")
      .def(
          "step_within",
          [](Flow& flow, double epsilon, double tolerance) {
            onehop::lattice::FlowStep found;
            {
              const nb::gil_scoped_release released;
              found = flow.step_within(epsilon, tolerance);
            }
            return nb::make_tuple(found.epsilon, found.error, found.next);
          },
          "epsilon"_a, "tolerance"_a,
          nb::sig("def step_within(self, epsilon: float, tolerance: float) -> tuple[float, float, float]"),
          "A step of at most `epsilon` with at most this error: its length, its error, the next one's length. "
          "Collective.")
      .def(
          "field_strength", [](Flow& flow) { return measured([&] { return flow.field_strength(); }); },
          nb::sig("def field_strength(self) -> tuple[float, float, float]"),
          "Energy by plaquettes and by clover leaves, topological charge. Collective.")
      .def("copy_to", &Flow::copy_to, "gauge"_a, release(), "Put the links into a gauge field. Collective.");
}
