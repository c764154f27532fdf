// Exchanges that move the qubits of a state to other bits. Every exchange between ranks starts here.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "onehop/quantum/state.h"
#include "quantum/state/state_impl.h"
#include "src/base/one_size.h"
#include "src/base/text.h"

namespace onehop::quantum {

namespace {

bool moves(const std::vector<int>& permutation, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i) {
    if (permutation[i] != static_cast<int>(i)) return true;
  }
  return false;
}

}  // namespace

std::array<std::vector<int>, 3> around_low_bits(std::vector<int> permutation, std::size_t low, std::size_t local) {
  std::array<std::vector<int>, 3> parts;
  for (auto& part : parts) {
    part.resize(permutation.size());
    std::iota(part.begin(), part.end(), 0);
  }
  const auto is_local = [&](std::size_t bit) { return static_cast<std::size_t>(permutation[bit]) < local; };
  for (std::size_t bit = 0; bit < low; ++bit) {
    if (is_local(bit)) continue;
    std::size_t other = low;
    while (!is_local(other)) ++other;
    std::swap(parts[0][bit], parts[0][other]);
    std::swap(permutation[bit], permutation[other]);
  }
  std::vector<bool> taken(permutation.size(), false);
  for (std::size_t bit = low; bit < permutation.size(); ++bit) {
    if (permutation[bit] < static_cast<int>(low)) continue;
    parts[1][bit] = permutation[bit];
    taken[static_cast<std::size_t>(permutation[bit])] = true;
  }
  std::size_t open = low;
  for (std::size_t bit = low; bit < permutation.size(); ++bit) {
    if (permutation[bit] >= static_cast<int>(low)) continue;
    while (taken[open]) ++open;
    parts[1][bit] = static_cast<int>(open++);
  }
  for (std::size_t bit = 0; bit < permutation.size(); ++bit) {
    parts[2][static_cast<std::size_t>(parts[1][bit])] = permutation[bit];
  }
  return parts;
}

std::vector<LocalOperation> swaps_of(std::vector<int> permutation) {
  std::vector<LocalOperation> swaps;
  for (std::size_t bit = 0; bit < permutation.size(); ++bit) {
    // What is on this bit goes to its place, and what is there comes here.
    while (permutation[bit] != static_cast<int>(bit)) {
      const int to = permutation[bit];
      swaps.push_back({.kind = LocalKind::swap, .bits = {static_cast<int>(bit), to}});
      std::swap(permutation[bit], permutation[static_cast<std::size_t>(to)]);
    }
  }
  return swaps;
}

Plan& State::Impl::plan_for(const std::vector<int>& permutation) {
  for (auto& [key, plan] : plans) {
    if (key == permutation) return *plan;
  }
  // Drop the cached plans when their staging exceeds the budget, or when there are many.
  std::int64_t held = 0;
  for (const auto& [key, plan] : plans) held += plan->staging_bytes();
  if (held > std::int64_t{1} << 20 || plans.size() >= 32) plans.clear();
  // Encoded blocks move whole.
  const int inside = is_encoded() ? EncodedAmplitudes::block_bits : 0;
  PermuteBitsSpec spec{qubits - inside, local_bits - inside, {permutation.begin() + inside, permutation.end()}};
  for (int& bit : spec.permutation) bit -= inside;
  spec.element_bytes = bytes_of_amplitudes(precision, inside);
  const Schedule schedule = permute_bits(spec, group.rank());
  PlanOptions options;
  options.slot_bytes = std::max<std::int64_t>(staging / 2, 4096);
  const std::array<std::span<std::byte>, 1> arrays{memory.bytes()};
  plans.emplace_back(permutation, std::make_unique<Plan>(group, schedule, arrays, options));
  return *plans.back().second;
}

std::int64_t State::Impl::bytes_between_hosts(const std::vector<int>& permutation) const {
  // The number of a destination: bits that come from this rank's number are fixed, those from local bits take all
  // values equally often.
  const auto rank = static_cast<unsigned>(group.rank());
  unsigned fixed = 0;
  std::vector<int> free;
  for (int bit = 0; bit < qubits; ++bit) {
    const int to = permutation[static_cast<std::size_t>(bit)] - local_bits;
    if (to < 0) continue;
    if (bit < local_bits) {
      free.push_back(to);
    } else {
      fixed |= (rank >> (bit - local_bits) & 1U) << to;
    }
  }
  const std::int64_t share = bytes_of_amplitudes(precision, local_bits) >> free.size();
  std::int64_t bytes = 0;
  for (unsigned value = 0; value >> free.size() == 0; ++value) {
    unsigned destination = fixed;
    for (std::size_t i = 0; i < free.size(); ++i) destination |= (value >> i & 1U) << free[i];
    if (!group.shares_memory(static_cast<int>(destination))) bytes += share;
  }
  return bytes;
}

void State::Impl::permute_inside(State& state, const std::vector<int>& permutation) {
  for (int& bit : bits) bit = permutation[static_cast<std::size_t>(bit)];
  state.apply(swaps_of(permutation));
}

void State::Impl::share_scale() {
  struct Share {
    double scale = 0;
    double squares = 0;
  };
  Share mine{encoded.scale(), encoded.squares()};
  if (mine.squares < 0) {
    mine.squares = 0;
    for_windows([&]<typename T>(std::span<const std::complex<T>> amplitudes, std::uint64_t) {
      mine.squares += quantum::norm_squared<T>(amplitudes, engine) / (mine.scale * mine.scale);
    });
  }
  double squares = 0;
  double norm = 0;
  for (const Share& theirs : base::values_of_all(group, mine)) {
    squares += theirs.squares;
    norm += theirs.scale * theirs.scale * theirs.squares;
  }
  if (squares > 0 && norm > 0) encoded.set_scale(std::sqrt(norm / squares));
  encoded.forget_squares();
}

void State::permute(const std::vector<int>& permutation) {
  if (!moves(permutation, 0, permutation.size())) return;
  if (impl_->is_encoded() || impl_->stored) {
    const auto local = static_cast<std::size_t>(impl_->local_bits);
    if (!moves(permutation, local, permutation.size())) return impl_->permute_inside(*this, permutation);
    constexpr auto low = static_cast<std::size_t>(EncodedAmplitudes::block_bits);
    if (moves(permutation, 0, low)) {
      const auto parts = around_low_bits(permutation, low, local);
      for (const auto& part : parts) permute(part);
      return;
    }
    impl_->share_scale();
  }
  if (impl_->on_device) {
    impl_->counters.bytes_sent += impl_->move_on_device(permutation);
  } else {
    Plan& plan = impl_->plan_for(permutation);
    const std::int64_t before = plan.counters().bytes_sent;
    plan.run();
    impl_->counters.bytes_sent += plan.counters().bytes_sent - before;
  }
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

void State::make_lowest(std::span<const int> qubits) {
  std::vector<int> permutation(impl_->bits.size());
  std::iota(permutation.begin(), permutation.end(), 0);
  for (std::size_t i = 0; i < qubits.size(); ++i) {
    int& mine = permutation[static_cast<std::size_t>(impl_->bit_of(qubits[i]))];
    std::iter_swap(std::ranges::find(permutation, static_cast<int>(i)), std::ranges::find(permutation, mine));
  }
  permute(permutation);
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
