// The symmetry of traffic on a machine.
//
// In an exchange of bits a rank sends to the places that differ from its own in some bits of a set. Seen from one
// dimension of a torus with 2^m places, of which the set holds the bits S:
//
// - A shift by 2^(b + 1), with b the highest bit of S, changes no bit of S, so it maps the exchange to itself, and each
//   message to the one with the same exclusive or.
// - If S holds the bits j to m - 1 at the top of the dimension, a carry into them leads to another partner, and b need
//   only be the highest bit of S below j. The order of a rank's messages changes, so this holds for mixed rounds only.
// - If the top bit is not in S, routes stay inside blocks of the period, which is at most half of the torus. Mirroring
//   every block (exclusive or with all bits below its size) maps routes to routes, upwards to downwards.
#include <algorithm>
#include <bit>

#include "machine/simulate/round_flows.h"

namespace onehop::detail {
namespace {

constexpr std::int64_t max_ordered = 16;  // messages to everyone; with so few the order counts

bool is_power_of_two(std::int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

using Masks = std::vector<std::vector<std::uint64_t>>;  // per level and dimension

// The bits of every dimension that an exchange changes; nothing for a bit beyond the machine.
Masks masks_of(const Machine& machine, const std::vector<int>& bits) {
  Masks masks;
  int first = 0;
  for (const Level& level : machine.levels) {
    std::vector<std::uint64_t>& dims = masks.emplace_back();
    for (const std::int64_t extent : level.extents) {
      const int width = std::countr_zero(static_cast<std::uint64_t>(extent));
      std::uint64_t mask = 0;
      for (const int bit : bits) {
        if (bit >= first && bit < first + width) mask |= std::uint64_t{1} << (bit - first);
      }
      dims.push_back(mask);
      first += width;
    }
  }
  return bits.empty() || bits.back() < first ? masks : Masks{};
}

// The shortest shift that maps an exchange of these bits of a dimension to itself.
std::int64_t period_of(std::uint64_t mask, std::int64_t extent, bool mixed) {
  auto bit = static_cast<std::uint64_t>(extent) >> 1U;
  while (mixed && (mask & bit) != 0) {
    mask &= ~bit;
    bit >>= 1U;
  }
  return static_cast<std::int64_t>(std::bit_floor(mask) << 1U) | static_cast<std::int64_t>(mask == 0);
}

// Lengthens the periods for one exchange, and takes mirroring away where its routes leave a block.
void add_exchange(const Machine& machine, const Masks& masks, bool mixed, Symmetry& symmetry) {
  for (std::size_t l = 0; l < machine.levels.size(); ++l) {
    const Level& level = machine.levels[l];
    // Exchanging members of a switch or tree keeps its routes as they are, so that only these routings need a period.
    if (level.routing != Routing::torus && level.routing != Routing::dragonfly) continue;
    for (std::size_t d = 0; d < level.extents.size(); ++d) {
      std::int64_t& period = symmetry.periods[l][d];
      period = std::max(period, period_of(masks[l][d], level.extents[d], mixed));
      const bool top = (masks[l][d] & static_cast<std::uint64_t>(level.extents[d]) >> 1U) != 0;
      symmetry.mirrored[l][d] = symmetry.mirrored[l][d] && !top;
    }
  }
}

}  // namespace

Symmetry symmetry_of(const Traffic& traffic, const Machine& machine, bool own_places) {
  Symmetry symmetry;
  if (machine.processors() != traffic.ranks) return {};
  const bool everyone = std::ranges::any_of(
      traffic.rounds, [](const TrafficRound& round) { return round.kind == TrafficRound::Kind::everyone; });
  for (const Level& level : machine.levels) {
    symmetry.periods.emplace_back(level.extents.size(), 1);
    symmetry.mirrored.emplace_back(level.extents.size(), level.routing == Routing::torus && !everyone);
  }
  for (const TrafficRound& round : traffic.rounds) {
    if (round.kind == TrafficRound::Kind::list || round.local_bytes.size() > 1 || round.local_pieces.size() > 1) {
      return {};
    }
    if (round.kind == TrafficRound::Kind::everyone && traffic.ranks <= max_ordered + 1) return {};
    if (round.kind != TrafficRound::Kind::bits) continue;
    if (own_places) return {};
    symmetry.exclusive_or = true;
    for (const Level& level : machine.levels) {
      if (!std::ranges::all_of(level.extents, is_power_of_two)) return {};
    }
    const Masks masks = masks_of(machine, round.bits);
    if (masks.empty()) return {};
    const bool mixed = round.mixed && round.bits.size() > 4;  // fewer messages are sent in order
    symmetry.unordered = symmetry.unordered || mixed;
    add_exchange(machine, masks, mixed, symmetry);
  }
  for (std::size_t l = 0; l < symmetry.periods.size(); ++l) {
    for (std::size_t d = 0; d < symmetry.periods[l].size(); ++d) {
      if (symmetry.periods[l][d] == 1) symmetry.mirrored[l][d] = false;
    }
  }
  return symmetry;
}

}  // namespace onehop::detail
