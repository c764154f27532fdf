#include "quantum/simulator/light_cone.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <ranges>

#include "quantum/circuit/commutation.h"

namespace onehop::quantum {
namespace {

// Where observables have the identity on a wire; elsewhere a wire has a Letter.
constexpr char none = 'I';
constexpr char any = static_cast<char>(detail::Letter::any);
constexpr char z = static_cast<char>(detail::Letter::z);

void add_letter(char& letter, char more) {
  if (letter == none) letter = more;
  if (letter != more) letter = any;
}

// The only letter that the strings have on each wire, or `any`.
std::string letters_of(const Placement& placement, std::span<const PauliSum> sums) {
  std::string letters(static_cast<std::size_t>(placement.qubits), none);
  for (const PauliSum& sum : sums) {
    for (const PauliTerm& term : sum.terms) {
      for (const auto& [qubit, letter] : term.paulis) {
        const int wire = placement.wires[static_cast<std::size_t>(qubit)];
        add_letter(letters[static_cast<std::size_t>(wire)], letter);
      }
    }
  }
  return letters;
}

// Whether strings of Z remain strings of Z: the gate is a permutation with phases.
bool keeps_diagonals(const Operation& operation) {
  if (operation.kind == OperationKind::swap) return true;
  return operation.kind == OperationKind::matrix &&
         std::ranges::all_of(operation.values, [](Complex value) { return value == 0.0 || std::norm(value) == 1; });
}

// Whether the gate matters to observables with these letters after it. If so, makes them those before it.
bool matters(const Operation& operation, std::string& letters) {
  const auto gate = detail::commutation_of(operation).letters;
  const auto letter = [&](int wire) -> char& { return letters[static_cast<std::size_t>(wire)]; };
  const auto all = [&](auto&& holds) {
    return std::ranges::all_of(gate, [&](const auto& one) { return holds(letter(one.first), one.second); });
  };
  if (all([](char old, detail::Letter own) { return old == none || (old != any && old == static_cast<char>(own)); })) {
    return false;
  }
  const bool diagonal = all([](char old, detail::Letter) { return old == none || old == z; });
  const bool stays = diagonal && keeps_diagonals(operation);
  for (const auto& [wire, own] : gate) {
    if (stays) letter(wire) = z;
    if (!stays) add_letter(letter(wire), static_cast<char>(own));
  }
  return true;
}

}  // namespace

bool LightCone::find(const Placement& placement, std::span<const PauliSum> sums) {
  std::string letters = letters_of(placement, sums);
  if (letters == letters_ && !within_.empty()) return false;
  letters_ = letters;
  within_.assign(placement.operations.size(), true);
  for (const Stage& stage : std::views::reverse(placement.stages)) {
    for (const int index : std::views::reverse(stage.operations)) {
      const auto i = static_cast<std::size_t>(index);
      within_[i] = matters(placement.operations[i], letters);
    }
  }
  return true;
}

bool LightCone::has_all() const { return std::ranges::all_of(within_, std::identity()); }

}  // namespace onehop::quantum
