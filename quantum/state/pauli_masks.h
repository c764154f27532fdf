// Pauli strings as masks of qubits.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <complex>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "onehop/plan.h"
#include "onehop/quantum/observable.h"
#include "onehop/quantum/state.h"
#include "src/base/fingerprint.h"

namespace onehop::quantum {

// x where the string has X or Y, z where it has Z or Y.
struct Masks {
  std::uint64_t x = 0;
  std::uint64_t z = 0;
  auto operator<=>(const Masks&) const = default;
};

// Throws BadInput for a qubit that is not below `qubits`, or that has two letters.
[[nodiscard]] Masks masks_of(const PauliTerm& term, int qubits);

void add_to(base::Fingerprint& print, const PauliSum& sum);

// Throws BadInput for a qubit that does not exist, or for a weight that is not real if `hermitian`.
void check_observables(std::span<const PauliSum> sums, int qubits, bool hermitian);

// The bits of an amplitude's place that have these qubits.
[[nodiscard]] inline std::uint64_t on_bits(const State& state, std::uint64_t qubits) {
  std::uint64_t mask = 0;
  for (; qubits != 0; qubits &= qubits - 1) {
    mask |= std::uint64_t{1} << state.bits()[static_cast<std::size_t>(std::countr_zero(qubits))];
  }
  return mask;
}

// Exchanges amplitudes with the rank whose number differs in the bits of `partner`, through a bounded buffer: calls
// visit(what, theirs, chunk) for each shift, with the partner's amplitudes of the chunk whose number differs from
// `chunk` by the shift. Collective.
template <typename T, typename What, typename Visit>
void stream_partner(const State& state, std::uint64_t partner, int chunk_bits,
                    const std::map<std::uint64_t, What>& by_shift, Visit&& visit) {
  const std::size_t chunk = std::size_t{1} << chunk_bits;
  std::vector<std::complex<T>> sent(chunk);
  std::vector<std::complex<T>> got(chunk);
  const int ranks = state.group().size();
  const auto count = static_cast<std::int64_t>(chunk);
  Schedule schedule{"partners", ranks, {}, {Round{}}, {}};
  for (const char* name : {"sent", "got"}) {
    schedule.arrays.push_back({name, std::int64_t{sizeof(std::complex<T>)}, ElementType::bytes, {count}});
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const Slice all = Slice::range(0, count);
    schedule.rounds[0].transfers.push_back({{rank, 0, all}, {rank ^ static_cast<int>(partner), 1, all}});
  }
  const std::array<std::span<std::byte>, 2> arrays{std::as_writable_bytes(std::span(sent)),
                                                   std::as_writable_bytes(std::span(got))};
  Plan plan(state.group(), schedule, arrays);
  std::vector<std::complex<T>> memory;
  for (const auto& [shift, what] : by_shift) {
    for (std::uint64_t c = 0; c >> (state.local_bits() - chunk_bits) == 0; ++c) {
      std::ranges::copy(state.piece<T>((c ^ shift) * chunk, chunk, memory), sent.begin());
      plan.run();
      visit(what, std::span<const std::complex<T>>(got), c);
    }
  }
}

}  // namespace onehop::quantum
