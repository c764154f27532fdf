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
      "Measure the energy density from plaquettes and from clover leaves, and the topological charge. Collective.");
  module.def("lattice_polyakov_loop", &onehop::lattice::polyakov_loop, "gauge"_a, release(),
             "Return the average of tr / 3 of the product of all links in time. Collective.");
  module.def("longest_stable_flow_step", &onehop::lattice::longest_stable_flow_step, "dims"_a,
             "Return the longest step of the flow that is stable on smooth fields of `dims` dimensions.");
  nb::class_<Flow>(module, "LatticeFlow", "The gradient flow of a gauge field by the Wilson action (Wilson flow).")
      .def(nb::init<const Gauge&>(), "gauge"_a, release(), "Start from a copy of these links. Collective.")
      .def_prop_ro("time", &Flow::time, "Flow time in units of the squared lattice spacing.")
      .def("step", &Flow::step, "epsilon"_a, release(), "Make a step of length `epsilon`, above 0 to 1. Collective.")
      .def("try_step", &Flow::try_step, "epsilon"_a, "tolerance"_a, release(),
           "Make a step if its error is at most the tolerance; otherwise leave the links as they are. Returns the "
           "error. "
           "Collective.")
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
          "Make a step of at most `epsilon`, shortened until its error is at most `tolerance`. Returns its length, its "
          "error, and the proposed length of the next step. Collective.")
      .def(
          "field_strength", [](Flow& flow) { return measured([&] { return flow.field_strength(); }); },
          nb::sig("def field_strength(self) -> tuple[float, float, float]"),
          "Measure the energy density from plaquettes and from clover leaves, and the topological charge. Collective.")
      .def("copy_to", &Flow::copy_to, "gauge"_a, release(), "Copy the links to a gauge field. Collective.");
}
