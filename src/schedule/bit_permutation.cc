#include "src/schedule/bit_permutation.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>

namespace onehop::detail {
namespace {

constexpr int max_bits = 62;

constexpr std::int64_t two_to(int bit) { return std::int64_t{1} << bit; }

// A free bit of the element number: the stride that it adds at the sender (`from`) and at the receiver (`to`).
struct Dimension {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t extent = 2;
};

// A strided set of elements: the first element number at either end, and the dimensions on top of it.
struct Region {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::vector<Dimension> dimensions;
};

// The free local bits of one cycle of the permutation. An element keeps its place if in every cycle all bits are equal,
// and equal to the bits that the ranks fix (`value`), if there are any.
struct Chain {
  int value = -1;  // -1: none is fixed
  std::vector<Dimension> bits;
};

// Appends the regions in which the bits of `chain` differ: in region k, bits 0 .. k - 1 are equal and bit k differs.
void add_unequal(const Region& rest, const Chain& chain, std::vector<Region>& regions) {
  for (std::size_t k = chain.value < 0 ? 1 : 0; k < chain.bits.size(); ++k) {
    Region region = rest;
    Dimension equal;
    for (std::size_t i = 0; i < k; ++i) {
      equal.from += chain.bits[i].from;
      equal.to += chain.bits[i].to;
    }
    const Dimension& other = chain.bits[k];
    if (chain.value < 0) {
      region.from += other.from;
      region.to += other.to;
      region.dimensions.push_back({equal.from - other.from, equal.to - other.to});
    } else {
      const Dimension& set = chain.value == 1 ? equal : other;
      region.from += set.from;
      region.to += set.to;
    }
    region.dimensions.insert(region.dimensions.end(), chain.bits.begin() + static_cast<std::ptrdiff_t>(k) + 1,
                             chain.bits.end());
    regions.push_back(std::move(region));
  }
}

// Returns `whole` without the elements that keep their place. `whole` does not include the dimensions of the chains.
std::vector<Region> without_fixed(const Region& whole, const std::vector<Chain>& chains) {
  std::vector<Region> regions;
  Region equal_before = whole;
  for (std::size_t c = 0; c < chains.size(); ++c) {
    Region rest = equal_before;
    for (std::size_t later = c + 1; later < chains.size(); ++later) {
      rest.dimensions.insert(rest.dimensions.end(), chains[later].bits.begin(), chains[later].bits.end());
    }
    add_unequal(rest, chains[c], regions);
    Dimension all;
    for (const Dimension& bit : chains[c].bits) {
      all.from += bit.from;
      all.to += bit.to;
    }
    if (chains[c].value < 0) equal_before.dimensions.push_back(all);
    if (chains[c].value == 1) {
      equal_before.from += all.from;
      equal_before.to += all.to;
    }
  }
  return regions;
}

// Sorts dimensions by the sender's stride and merges those that are contiguous at both ends.
std::vector<Dimension> simplified(std::vector<Dimension> dimensions) {
  std::sort(dimensions.begin(), dimensions.end(),
            [](const Dimension& a, const Dimension& b) { return std::abs(a.from) > std::abs(b.from); });
  std::vector<Dimension> merged;
  for (const Dimension& inner : dimensions) {
    if (!merged.empty() && merged.back().from == inner.from * inner.extent &&
        merged.back().to == inner.to * inner.extent) {
      merged.back() = {inner.from, inner.to, merged.back().extent * inner.extent};
    } else {
      merged.push_back(inner);
    }
  }
  return merged;
}

Slice box(std::int64_t offset, std::span<const Dimension> dimensions, std::int64_t Dimension::* stride) {
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;
  for (const Dimension& dimension : dimensions) {
    extents.push_back(dimension.extent);
    strides.push_back(dimension.*stride);
  }
  return Slice::box(offset, extents, strides);
}

// Calls visit(from, to) for each slice of the region while it returns true. There is one slice, unless the region has
// more dimensions than a slice can have.
template <class Visit>
void for_each_slice(const Region& region, const Visit& visit) {
  const std::vector<Dimension> dimensions = simplified(region.dimensions);
  const std::size_t outer = dimensions.size() - std::min(dimensions.size(), static_cast<std::size_t>(Slice::max_dims));
  const std::span<const Dimension> inner = std::span(dimensions).subspan(outer);
  std::vector<std::int64_t> index(outer, 0);
  for (;;) {
    std::int64_t from = region.from;
    std::int64_t to = region.to;
    for (std::size_t d = 0; d < outer; ++d) {
      from += index[d] * dimensions[d].from;
      to += index[d] * dimensions[d].to;
    }
    if (!visit(box(from, inner, &Dimension::from), box(to, inner, &Dimension::to))) return;
    std::size_t d = outer;
    while (d > 0 && ++index[d - 1] == dimensions[d - 1].extent) index[--d] = 0;
    if (d == 0) return;
  }
}

class Mover {
 public:
  explicit Mover(const BitPermutation& permutation)
      : permutation_(permutation),
        local_(permutation.local_bits),
        bits_(static_cast<int>(permutation.to.size())),
        from_(permutation.to.size()) {
    for (int bit = 0; bit < bits_; ++bit) {
      from_[static_cast<std::size_t>(to(bit))] = bit;
      if (bit < local_ && to(bit) >= local_) leaving_.push_back(bit);
      if (bit >= local_ && to(bit) < local_) coming_.push_back(bit);
    }
    find_cycles();
  }

  [[nodiscard]] int ranks() const { return 1 << (bits_ - local_); }

  // The ranks to which `rank` sends, in ascending order, itself included if any element stays on it; below, the ranks
  // from which it receives.
  [[nodiscard]] std::vector<int> receivers_of(int rank) const {
    int fixed = 0;
    for (int bit = local_; bit < bits_; ++bit) {
      if (to(bit) >= local_ && rank_bit(rank, bit) != 0) fixed |= 1 << (to(bit) - local_);
    }
    std::vector<int> places;
    for (const int bit : leaving_) places.push_back(to(bit));
    return all_with(fixed, places);
  }
  [[nodiscard]] std::vector<int> senders_to(int rank) const {
    int fixed = 0;
    for (int bit = local_; bit < bits_; ++bit) {
      const int source = from_[static_cast<std::size_t>(bit)];
      if (source >= local_ && rank_bit(rank, bit) != 0) fixed |= 1 << (source - local_);
    }
    return all_with(fixed, coming_);
  }

  // Appends transfers until there are `max_transfers`.
  void add_transfers(int sender, int receiver, Codec codec, std::size_t max_transfers,
                     std::vector<Transfer>& transfers) const {
    if (transfers.size() >= max_transfers) return;
    for (const Region& region : regions(sender, receiver)) {
      for_each_slice(region, [&](Slice from, Slice to) {
        transfers.push_back({{sender, permutation_.array, std::move(from)},
                             {receiver, permutation_.array, std::move(to)},
                             Combine::replace,
                             codec});
        return transfers.size() < max_transfers;
      });
      if (transfers.size() >= max_transfers) return;
    }
  }

  [[nodiscard]] double slices_per_pair() const {
    const std::vector<Dimension> dimensions = simplified(regions(0, 1).front().dimensions);
    double slices = 1;
    for (std::size_t d = 0; d + Slice::max_dims < dimensions.size(); ++d)
      slices *= static_cast<double>(dimensions[d].extent);
    return slices;
  }

  [[nodiscard]] std::vector<Place> moves(int rank) const {
    std::vector<Place> places;
    Region whole;
    std::vector<Chain> chains(cycles_.size());
    const bool any_fixed = set_values(rank, chains);
    for (int bit = 0; bit < local_; ++bit) put(bit, two_to(bit), any_fixed, whole, chains);
    for (const Region& region : any_fixed ? without_fixed(whole, chains) : std::vector<Region>{whole}) {
      for_each_slice(region, [&](Slice from, const Slice&) {
        places.push_back({rank, permutation_.array, std::move(from)});
        return true;
      });
    }
    return places;
  }

 private:
  [[nodiscard]] int to(int bit) const { return permutation_.to[static_cast<std::size_t>(bit)]; }
  [[nodiscard]] int rank_bit(int rank, int bit) const { return rank >> (bit - local_) & 1; }

  void find_cycles() {
    cycle_of_.assign(permutation_.to.size(), -1);
    for (int first = 0; first < bits_; ++first) {
      if (to(first) == first || cycle_of_[static_cast<std::size_t>(first)] >= 0) continue;
      std::vector<int> cycle;
      for (int bit = first; cycle.empty() || bit != first; bit = to(bit)) {
        cycle_of_[static_cast<std::size_t>(bit)] = static_cast<int>(cycles_.size());
        cycle.push_back(bit);
      }
      cycles_.push_back(std::move(cycle));
    }
  }

  [[nodiscard]] std::vector<int> all_with(int fixed, const std::vector<int>& places) const {
    std::vector<int> ranks;
    for (int pattern = 0; pattern < 1 << places.size(); ++pattern) {
      int rank = fixed;
      for (std::size_t i = 0; i < places.size(); ++i) rank |= (pattern >> i & 1) << (places[i] - local_);
      ranks.push_back(rank);
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

  // Sets the value that the rank's bits fix in each cycle. False if two differ: no element of the rank keeps its place.
  bool set_values(int rank, std::vector<Chain>& chains) const {
    for (std::size_t c = 0; c < cycles_.size(); ++c) {
      for (const int bit : cycles_[c]) {
        if (bit < local_) continue;
        const int value = rank_bit(rank, bit);
        if (chains[c].value >= 0 && chains[c].value != value) return false;
        chains[c].value = value;
      }
    }
    return true;
  }

  // Adds a free local bit to its chain, or to `whole` if it is in no cycle or no element keeps its place.
  void put(int bit, std::int64_t there, bool any_fixed, Region& whole, std::vector<Chain>& chains) const {
    const int cycle = cycle_of_[static_cast<std::size_t>(bit)];
    auto& dimensions = any_fixed && cycle >= 0 ? chains[static_cast<std::size_t>(cycle)].bits : whole.dimensions;
    dimensions.push_back({two_to(bit), there});
  }

  [[nodiscard]] std::vector<Region> regions(int sender, int receiver) const {
    Region whole;
    for (const int bit : leaving_) whole.from += rank_bit(receiver, to(bit)) * two_to(bit);
    for (const int bit : coming_) whole.to += rank_bit(sender, bit) * two_to(to(bit));
    std::vector<Chain> chains(cycles_.size());
    const bool any_fixed = sender == receiver && set_values(sender, chains);
    for (int bit = 0; bit < local_; ++bit) {
      if (to(bit) < local_) put(bit, two_to(to(bit)), any_fixed, whole, chains);
    }
    return any_fixed ? without_fixed(whole, chains) : std::vector<Region>{whole};
  }

  const BitPermutation& permutation_;
  int local_;
  int bits_;
  std::vector<int> from_;     // the inverse of `to`
  std::vector<int> leaving_;  // local bits that become rank bits
  std::vector<int> coming_;   // rank bits that become local
  std::vector<std::vector<int>> cycles_;
  std::vector<int> cycle_of_;  // -1: the bit keeps its place
};

}  // namespace

std::string permutation_problem(const BitPermutation& permutation) {
  const int bits = static_cast<int>(permutation.to.size());
  if (bits > max_bits) {
    return "expected at most " + std::to_string(max_bits) + " bits, found " + std::to_string(bits);
  }
  if (permutation.local_bits < 0 || permutation.local_bits > bits) {
    return "expected local bits from 0 to " + std::to_string(bits) + ", the bits of the index, found " +
           std::to_string(permutation.local_bits);
  }
  if (bits - permutation.local_bits > 30) {
    return "expected at most 2^30 ranks, found 2^" + std::to_string(bits - permutation.local_bits);
  }
  std::uint64_t seen = 0;
  for (std::size_t bit = 0; bit < permutation.to.size(); ++bit) {
    const int to = permutation.to[bit];
    const bool inside = to >= 0 && to < bits;
    if (inside && (seen >> to & 1) == 0) {
      seen |= std::uint64_t{1} << to;
      continue;
    }
    return "expected every bit from 0 to " + std::to_string(bits - 1) + " once as a place to go to, found " +
           std::to_string(to) + (inside ? " twice" : "") + " for bit " + std::to_string(bit);
  }
  return {};
}

std::string permutation_problem(const Schedule& schedule, const BitPermutation& permutation) {
  if (std::string problem = permutation_problem(permutation); !problem.empty()) return problem;
  if (permutation.array < 0 || static_cast<std::size_t>(permutation.array) >= schedule.arrays.size()) {
    return "expected an array of the schedule, found number " + std::to_string(permutation.array);
  }
  const int rank_bits = static_cast<int>(permutation.to.size()) - permutation.local_bits;
  if (schedule.ranks != 1 << rank_bits) {
    return "expected 2^" + std::to_string(rank_bits) + " ranks, found " + std::to_string(schedule.ranks);
  }
  for (const std::int64_t elements : schedule.arrays[static_cast<std::size_t>(permutation.array)].elements) {
    if (elements >= two_to(permutation.local_bits)) continue;
    return "expected an array of 2^" + std::to_string(permutation.local_bits) + " elements or more, found " +
           std::to_string(elements);
  }
  return {};
}

std::vector<Transfer> permutation_transfers(const BitPermutation& permutation, Codec codec,
                                            std::optional<int> only_rank, std::size_t max_transfers) {
  const Mover mover(permutation);
  std::vector<Transfer> transfers;
  const auto add_from = [&](int sender) {
    for (const int receiver : mover.receivers_of(sender))
      mover.add_transfers(sender, receiver, codec, max_transfers, transfers);
  };
  if (!only_rank) {
    for (int rank = 0; rank < mover.ranks() && transfers.size() < max_transfers; ++rank) add_from(rank);
    return transfers;
  }
  bool own_done = false;
  for (const int sender : mover.senders_to(*only_rank)) {
    if (sender >= *only_rank && !own_done) {
      add_from(*only_rank);
      own_done = true;
    }
    if (sender != *only_rank) mover.add_transfers(sender, *only_rank, codec, max_transfers, transfers);
  }
  if (!own_done) add_from(*only_rank);
  return transfers;
}

double slices_per_pair(const BitPermutation& permutation) { return Mover(permutation).slices_per_pair(); }

std::vector<Place> permutation_moves(const BitPermutation& permutation, int rank) {
  return Mover(permutation).moves(rank);
}

std::vector<std::pair<int, int>> swaps_of(const std::vector<int>& to) {
  std::vector<std::pair<int, int>> swaps;
  std::vector<bool> done(to.size(), false);
  for (int first = 0; first < static_cast<int>(to.size()); ++first) {
    // After each swap, the first bit's place holds the value that has to move on.
    for (int bit = to[static_cast<std::size_t>(first)]; bit != first && !done[static_cast<std::size_t>(bit)];
         bit = to[static_cast<std::size_t>(bit)]) {
      swaps.emplace_back(first, bit);
      done[static_cast<std::size_t>(bit)] = true;
    }
    done[static_cast<std::size_t>(first)] = true;
  }
  return swaps;
}

PermutationSteps steps_of(const BitPermutation& permutation) {
  const int local = permutation.local_bits;
  const auto to = [&](int bit) { return permutation.to[static_cast<std::size_t>(bit)]; };
  PermutationSteps steps{permutation, {}};
  std::vector<int> inside(static_cast<std::size_t>(local));
  for (int bit = 0; bit < local; ++bit) {
    int last = bit;  // the bit whose value the exchange brings to where `bit` was
    if (to(bit) < local) {
      steps.exchange.to[static_cast<std::size_t>(bit)] = bit;
    } else {
      while (to(last) >= local) last = to(last);
      steps.exchange.to[static_cast<std::size_t>(last)] = bit;
    }
    inside[static_cast<std::size_t>(bit)] = to(last);
  }
  steps.inside = swaps_of(inside);
  return steps;
}

}  // namespace onehop::detail
