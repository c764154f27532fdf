// The bindings of onehop._core: one function per noun, each in the file of its name. They translate, and decide nothing.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "onehop/channel.h"

namespace nb = nanobind;
using namespace nb::literals;

void bind_error(nb::module_& module);
void bind_environment(nb::module_& module);
void bind_codec(nb::module_& module);
void bind_slice(nb::module_& module);
void bind_schedule(nb::module_& module);
void bind_count(nb::module_& module);
void bind_verify(nb::module_& module);
void bind_patterns(nb::module_& module);
void bind_memory(nb::module_& module);
void bind_group(nb::module_& module);
void bind_channel(nb::module_& module);
void bind_plan(nb::module_& module);
void bind_collectives(nb::module_& module);
void bind_poisson(nb::module_& module);
void bind_lattice_gauge(nb::module_& module);
void bind_lattice_geometry(nb::module_& module);
void bind_lattice_flow(nb::module_& module);
void bind_lattice_hmc(nb::module_& module);
void bind_lattice_smearing(nb::module_& module);
void bind_lattice_staggered(nb::module_& module);
void bind_lattice_wilson(nb::module_& module);
void bind_launch(nb::module_& module);
void bind_tuning(nb::module_& module);
void bind_bench(nb::module_& module);
void bind_quantum_circuit(nb::module_& module);
void bind_quantum_placement(nb::module_& module);
void bind_quantum_simulator(nb::module_& module);

// A list that comes out as a tuple, so that nobody believes that appending to it changes the object it came from.
template <class Sequence>
[[nodiscard]] nb::tuple as_tuple(const Sequence& items) {
  nb::list list;
  for (const auto& item : items) list.append(nb::cast(item));
  return nb::tuple(list);
}

// The transport of a collective step by its name. An unknown one is this rank's error, and the others hear of it.
[[nodiscard]] onehop::TransportKind transport_for(const onehop::Group& group, const std::string& name);
