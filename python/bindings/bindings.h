// The bindings of onehop._core: one function per noun, each in the file of its name. A binding translates and decides
// nothing.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

#include "onehop/channel.h"
#include "onehop/error.h"

namespace nb = nanobind;
using namespace nb::literals;

void bind_error(nb::module_& module);
// After all others: lets wrong arguments of the functions bound so far be errors of onehop.
void explain_wrong_calls(nb::module_& module);
void bind_environment(nb::module_& module);
void bind_codec(nb::module_& module);
void bind_lossless(nb::module_& module);
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
void bind_lattice_fixing(nb::module_& module);
void bind_lattice_flow(nb::module_& module);
void bind_lattice_hmc(nb::module_& module);
void bind_lattice_smearing(nb::module_& module);
void bind_lattice_staggered(nb::module_& module);
void bind_lattice_wilson(nb::module_& module);
void bind_launch(nb::module_& module);
void bind_mapping(nb::module_& module);
void bind_tuning(nb::module_& module);
void bind_measure(nb::module_& module);
void bind_quantum_circuit(nb::module_& module);
void bind_quantum_language(nb::module_& module);
void bind_quantum_compiled(nb::module_& module);
void bind_quantum_placement(nb::module_& module);
void bind_quantum_simulator(nb::module_& module);
void bind_quantum_state(nb::module_& module);
void bind_quantum_program(nb::module_& module);
void bind_machine(nb::module_& module);
void bind_rails(nb::module_& module);
void bind_simulate(nb::module_& module);
void bind_device(nb::module_& module);

// A sequence that becomes a tuple rather than a list, because appending to it would not change the C++ object.
template <class Sequence>
struct Tuple {
  Sequence items;
};

template <class Sequence>
[[nodiscard]] Tuple<Sequence> as_tuple(Sequence&& items) {
  return {std::forward<Sequence>(items)};
}

template <class Sequence>
struct nanobind::detail::type_caster<Tuple<Sequence>> {
  using Item = std::remove_cvref_t<decltype(*std::begin(std::declval<const std::remove_cvref_t<Sequence>&>()))>;
  static constexpr auto Name = const_name("tuple[") + make_caster<Item>::Name + const_name(", ...]");
  static handle from_cpp(const Tuple<Sequence>& tuple, rv_policy /*policy*/, cleanup_list* /*cleanup*/) noexcept {
    list found;
    for (const auto& item : tuple.items) found.append(cast(item));
    return nanobind::tuple(found).release();
  }
};

// The getter of a member, or of the result of a member function, as a tuple.
template <class Owner, class Member>
[[nodiscard]] auto tuple_of(Member Owner::* member) {
  return [member](const Owner& owner) { return as_tuple(std::invoke(member, owner)); };
}

// The setter of a member.
template <class Owner, class Member>
[[nodiscard]] auto setter_of(Member Owner::* member) {
  return [member](Owner& owner, Member value) { owner.*member = std::move(value); };
}

// A whole number of Python or NumPy. Anything else is as wrong an input as one out of range, so it is the same error.
template <class Number>
[[nodiscard]] Number whole_number(const nb::object& value, const char* name) {
  Number number{};
  if (nb::try_cast(value, number)) return number;
  constexpr std::size_t longest = 60;
  std::string found = nb::repr(value).c_str();
  if (found.size() > longest) found = found.substr(0, longest) + "...";
  throw onehop::BadInput(std::string(name) + ": expected a whole number below 2^" +
                         std::to_string(8 * sizeof(Number) - 1) + ", found " + found);
}

// Looks up the transport of a collective step by name. An unknown name throws on this rank; the other ranks, which are
// waiting in the same step, raise Error.
[[nodiscard]] onehop::TransportKind transport_for(const onehop::Group& group, const std::string& name);
