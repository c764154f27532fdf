#include "collectives/forwarding.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collectives/policy.h"

namespace onehop::collectives::detail {
namespace {

// What each rank passes on. A rank sends its own block once, and what it passes on to ranks - 2 others; so all send the
// same, apart from ranks whose own block is longer than that.
std::vector<std::int64_t> passed_on(std::span<const std::int64_t> lengths) {
  const auto ranks = static_cast<double>(lengths.size());
  const double all = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  std::vector<std::int64_t> sorted(lengths.begin(), lengths.end());
  std::ranges::sort(sorted);
  double level = 0;
  double own = 0;
  for (std::size_t count = 1; count <= sorted.size(); ++count) {
    own += static_cast<double>(sorted[count - 1]);
    level = (all * (ranks - 2) + own) / static_cast<double>(count);
    if (count < sorted.size() && level <= static_cast<double>(sorted[count])) break;
  }
  std::vector<std::int64_t> shares;
  for (const std::int64_t length : lengths) {
    const double share = std::max(level - static_cast<double>(length), 0.0) / (ranks - 2);
    shares.push_back(static_cast<std::int64_t>(std::ceil(share / block_unit)) * block_unit);
  }
  return shares;
}

}  // namespace

std::vector<Pass> passes_of(std::span<const std::int64_t> lengths) {
  std::vector<std::int64_t> left = passed_on(lengths);
  std::vector<Pass> passes;
  std::int64_t at = 0;
  std::size_t by = 0;
  for (std::size_t owner = 0; owner < lengths.size(); ++owner) {
    const std::int64_t end = at + lengths[owner];
    while (at < end) {
      while (left[by] == 0 && by + 1 < left.size()) ++by;
      const std::int64_t part = left[by] > 0 ? std::min(left[by], end - at) : end - at;
      passes.push_back({static_cast<int>(owner), static_cast<int>(by), {at, at + part}});
      left[by] -= std::min(left[by], part);
      at += part;
    }
  }
  return passes;
}

Forwarding forwarding_of(std::span<const std::int64_t> lengths, int rank, std::int64_t chunk) {
  const auto ranks = static_cast<int>(lengths.size());
  const std::vector<Pass> passes = passes_of(lengths);
  std::int64_t longest = 0;
  for (const Pass& pass : passes) longest = std::max(longest, pass.range.elements());
  Forwarding made;
  made.with.resize(lengths.size());
  const auto add = [&](int from, int to, std::size_t phase, const Hop& hop) {
    if (from == rank) made.with[index(to)].out[phase].push_back(hop);
    if (to == rank) made.with[index(from)].in[phase].push_back(hop);
  };
  for (std::int64_t at = 0; at < longest; at += chunk) {
    for (const Pass& pass : passes) {
      if (at >= pass.range.elements()) continue;
      const std::int64_t first = pass.range.first + at;
      const Range range{first, std::min(first + chunk, pass.range.last)};
      if (pass.by != pass.owner) add(pass.owner, pass.by, 0, {range});
      const bool passes_on = pass.by == rank && pass.owner != rank;
      const std::size_t after = passes_on ? made.with[index(pass.owner)].in[0].size() : 0;
      for (int to = 0; to < ranks; ++to) {
        if (to == pass.by || to == pass.owner) continue;
        add(pass.by, to, pass.by == pass.owner ? 0 : 1, {range, passes_on ? pass.owner : -1, after});
      }
    }
  }
  return made;
}

Forwarding chain_of(std::int64_t length, int root, int ranks, int rank, std::int64_t chunk) {
  Forwarding made;
  made.with.resize(index(ranks));
  const int before = rank == root ? -1 : (rank + ranks - 1) % ranks;
  const int next = (rank + 1) % ranks;
  std::array<std::size_t, 2> arrived{};
  std::size_t phase = 0;
  for (std::int64_t at = 0; at < length; at += chunk, phase = 1 - phase) {
    const Range range{at, std::min(at + chunk, length)};
    if (before >= 0) made.with[index(before)].in[phase].push_back({range});
    if (next != root) made.with[index(next)].out[phase].push_back({range, before, ++arrived[phase], phase});
  }
  return made;
}

}  // namespace onehop::collectives::detail
