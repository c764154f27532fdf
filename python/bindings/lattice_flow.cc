#include "onehop/lattice/flow.h"

#include "onehop/lattice/loops.h"
#include "python/bindings/arrays.h"

using onehop::lattice::FieldStrength;
using onehop::lattice::Flow;
using onehop::lattice::FlowAction;
using onehop::lattice::Gauge;

namespace {

std::tuple<double, double, double> numbers_of(const FieldStrength& strength) {
  return {strength.energy_plaquette, strength.energy_clover, strength.charge};
}

FlowAction action_of(const std::string& name) {
  if (name == "wilson") return FlowAction::wilson;
  return name == "symanzik" ? FlowAction::symanzik : FlowAction::zeuthen;
}

}  // namespace

void bind_lattice_flow(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  module.def(
      "lattice_field_strength", [](const Gauge& gauge) { return numbers_of(onehop::lattice::field_strength(gauge)); },
      "gauge"_a, release());
  module.def("lattice_polyakov_loop", &onehop::lattice::polyakov_loop, "gauge"_a, release());
  module.def("lattice_improved_charge", &onehop::lattice::improved_charge, "gauge"_a, release());
  module.def("lattice_wilson_loops", &onehop::lattice::wilson_loops, "gauge"_a, "longest_r"_a, "longest_t"_a,
             release());
  module.def(
      "longest_stable_flow_step",
      [](int dims, const std::string& action) {
        return onehop::lattice::longest_stable_flow_step(dims, action_of(action));
      },
      "dims"_a, "action"_a);
  nb::class_<Flow>(module, "LatticeFlow", "The gradient flow of a gauge field.")
      .def(
          "__init__",
          [](Flow* self, const Gauge& gauge, const std::string& action) { new (self) Flow(gauge, action_of(action)); },
          "gauge"_a, "action"_a, release())
      .def_prop_ro("time", &Flow::time, "Flow time in units of the squared lattice spacing.")
      .def("step", &Flow::step, "epsilon"_a, release(), "Make a step of length `epsilon`, above 0 to 1. Collective.")
      .def("try_step", &Flow::try_step, "epsilon"_a, "tolerance"_a, release())
      .def(
          "step_within",
          [](Flow& flow, double epsilon, double tolerance) {
            const auto step = flow.step_within(epsilon, tolerance);
            return std::tuple(step.epsilon, step.error, step.next);
          },
          "epsilon"_a, "tolerance"_a, release())
      .def(
          "field_strength", [](Flow& flow) { return numbers_of(flow.field_strength()); }, release())
      .def("copy_to", &Flow::copy_to, "gauge"_a, release(), "Copy the links to a gauge field. Collective.");
}
