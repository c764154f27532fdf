// Exchanges that move the qubits of a state to other bits. Every exchange between ranks starts here.
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "onehop/plan.h"
#include "onehop/quantum/state.h"
#include "quantum/state/state_impl.h"
#include "src/base/text.h"

namespace onehop::quantum {

void State::permute(const std::vector<int>& permutation) {
  bool moves = false;
  for (std::size_t i = 0; i < permutation.size(); ++i) moves = moves || permutation[i] != static_cast<int>(i);
  if (!moves) return;
  Plan& plan = impl_->plan_for(permutation);
  const std::int64_t before = plan.counters().bytes_sent;
  plan.run();
  const std::int64_t sent = plan.counters().bytes_sent - before;
  impl_->counters.bytes_sent += sent;
  impl_->counters.bytes_between_hosts += impl_->bytes_between_hosts(permutation);
  bool crosses = false;
  std::uint64_t flips = 0;
  std::vector<LocalOperation> local_flips;  // flips of bits below part_bits are applied to the amplitudes
  for (int bit = 0; bit < impl_->qubits; ++bit) {
    const int to = permutation[static_cast<std::size_t>(bit)];
    crosses =
        crosses || ((bit < impl_->local_bits) != (to < impl_->local_bits)) || (bit >= impl_->local_bits && to != bit);
    if ((impl_->flips >> bit & 1U) == 0) continue;
    if (to >= impl_->part_bits) {
      flips |= std::uint64_t{1} << to;
    } else {
      local_flips.push_back({.kind = LocalKind::matrix, .bits = {to}, .values = {0, 1, 1, 0}});
    }
  }
  if (crosses) ++impl_->counters.exchanges;
  impl_->flips = flips;
  for (int& bit : impl_->bits) bit = permutation[static_cast<std::size_t>(bit)];
  apply(local_flips);
}

void State::exchange(std::span<const std::pair<int, int>> swaps) {
  std::vector<int> permutation(impl_->bits.size());
  std::iota(permutation.begin(), permutation.end(), 0);
  for (const auto& [a, b] : swaps) {
    std::swap(permutation.at(static_cast<std::size_t>(a)), permutation.at(static_cast<std::size_t>(b)));
  }
  permute(permutation);
}

void State::make_local(std::span<const int> qubits) {
  if (static_cast<int>(qubits.size()) > impl_->local_bits) {
    throw BadInput("make_local: expected at most " + base::counted(impl_->local_bits, "qubit") +
                   ", the local bits of each of " + base::counted(impl_->group.size(), "rank") + ", found " +
                   std::to_string(qubits.size()) + "; take fewer qubits or fewer ranks");
  }
  impl_->check_distinct(qubits);
  std::vector<bool> taken(impl_->bits.size(), false);
  for (const int qubit : qubits) taken[static_cast<std::size_t>(impl_->bit_of(qubit))] = true;
  std::vector<std::pair<int, int>> swaps;
  int slot = impl_->local_bits - 1;
  for (const int qubit : qubits) {
    const int bit = impl_->bit_of(qubit);
    if (bit < impl_->local_bits) continue;
    while (taken[static_cast<std::size_t>(slot)]) --slot;
    swaps.emplace_back(slot--, bit);
  }
  exchange(swaps);
}

void State::restore_order() {
  if (impl_->flips != 0) {
    std::vector<int> flipped;
    for (int qubit = 0; qubit < impl_->qubits; ++qubit) {
      if ((impl_->flips >> impl_->bit_of(qubit) & 1U) == 0) continue;
      flipped.push_back(qubit);
      // Make at most as many qubits local at once as there are local bits.
      if (static_cast<int>(flipped.size()) == impl_->local_bits) make_local(flipped), flipped.clear();
    }
    make_local(flipped);
  }
  std::vector<int> permutation(impl_->bits.size());
  for (std::size_t qubit = 0; qubit < permutation.size(); ++qubit) {
    permutation[static_cast<std::size_t>(impl_->bits[qubit])] = static_cast<int>(qubit);
  }
  permute(permutation);
}

}  // namespace onehop::quantum
