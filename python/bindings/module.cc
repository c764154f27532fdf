// The extension module onehop._core. Each noun is bound in the file of its name.
#include "onehop/version.h"
#include "python/bindings/bindings.h"

// NOLINTNEXTLINE: the macro is nanobind's.
NB_MODULE(_core, module) {
  module.doc() = "The C++ library onehop.";
  module.attr("__version__") = onehop::version();
  // The traceback of an unhandled exception keeps objects alive until the process ends, which is no leak.
  nb::set_leak_warnings(false);
  bind_error(module);
  bind_environment(module);
  bind_codec(module);
  bind_lossless(module);
  bind_slice(module);
  bind_schedule(module);
  bind_count(module);
  bind_verify(module);
  bind_patterns(module);
  bind_memory(module);
  bind_group(module);
  bind_channel(module);
  bind_plan(module);
  bind_collectives(module);
  bind_device(module);
  bind_poisson(module);
  bind_lattice_geometry(module);
  bind_lattice_gauge(module);
  bind_lattice_fixing(module);
  bind_lattice_flow(module);
  bind_lattice_hmc(module);
  bind_lattice_smearing(module);
  bind_lattice_staggered(module);
  bind_lattice_wilson(module);
  bind_mapping(module);
  bind_launch(module);
  bind_tuning(module);
  bind_measure(module);
  bind_quantum_circuit(module);
  bind_quantum_language(module);
  bind_quantum_placement(module);
  bind_quantum_state(module);
  bind_quantum_simulator(module);
  bind_quantum_compiled(module);
  bind_quantum_program(module);
  bind_machine(module);
  bind_rails(module);
  bind_simulate(module);
  explain_wrong_calls(module);
}
