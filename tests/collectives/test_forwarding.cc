// Blocks that are passed on: every byte gets to every rank once, and the rank that sends most sends the least possible.
#include "collectives/forwarding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

namespace onehop::collectives::detail {
namespace {

using Lengths = std::vector<std::int64_t>;

std::vector<Lengths> cases() {
  return {
      {0, 1 << 20, 0, 0}, {1 << 20, 0, 0},        {4 << 18, 3 << 18, 1 << 18}, {1, 1, 1 << 20},
      {5000, 5000, 5000}, {9 << 17, 1 << 17, 77}, {700, 0, 90001, 64},         Lengths(20, 1000),
  };
}

TEST(Forwarding, TheBusiestRankSendsTheLeast) {
  for (const Lengths& lengths : cases()) {
    const auto ranks = static_cast<std::int64_t>(lengths.size());
    Lengths sent(lengths.size(), 0);
    std::int64_t at = 0;
    for (const Pass& pass : passes_of(lengths)) {
      EXPECT_EQ(pass.range.first, at);
      at = pass.range.last;
      const bool direct = pass.by == pass.owner;
      sent[index(pass.owner)] += pass.range.elements() * (direct ? ranks - 1 : 1);
      if (!direct) sent[index(pass.by)] += pass.range.elements() * (ranks - 2);
    }
    const std::int64_t all = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    EXPECT_EQ(at, all);
    const std::int64_t least = std::max(*std::ranges::max_element(lengths), all * (ranks - 1) / ranks);
    EXPECT_LE(*std::ranges::max_element(sent), least + 64 * ranks) << "of " << ranks << " ranks";
  }
}

// Runs the hops of all ranks, each path as a queue of one chunk, in an order that favours the last ranks.
void expect_every_byte_once(const Lengths& lengths, const std::vector<Forwarding>& plans) {
  const auto ranks = static_cast<int>(lengths.size());
  using Path = std::pair<std::pair<int, int>, std::size_t>;  // from, to; phase
  std::map<Path, std::size_t> sent, received;
  std::vector<std::map<std::int64_t, std::int64_t>> got(lengths.size());  // ends of ranges, by their begins
  for (bool moved = true; moved;) {
    moved = false;
    for (int from = ranks - 1; from >= 0; --from) {
      for (int to = ranks - 1; to >= 0; --to) {
        for (const std::size_t phase : {1U, 0U}) {
          const auto& out = plans[index(from)].with[index(to)].out[phase];
          const auto& in = plans[index(to)].with[index(from)].in[phase];
          ASSERT_EQ(out.size(), in.size());
          const Path path{{from, to}, phase};
          if (received[path] < sent[path]) {
            const Hop& hop = in[received[path]++];
            EXPECT_EQ(hop.range.first, out[received[path] - 1].range.first);
            EXPECT_TRUE(got[index(to)].emplace(hop.range.first, hop.range.last).second);
            moved = true;
          } else if (sent[path] < out.size()) {
            const Hop& hop = out[sent[path]];
            if (hop.from >= 0 && received[{{hop.from, from}, hop.phase}] < hop.after) continue;
            ++sent[path];
            moved = true;
          }
        }
      }
    }
  }
  std::int64_t first = 0;
  const std::int64_t all = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t last = first + lengths[index(rank)];
    if (first < last) got[index(rank)].emplace(first, last);  // its own
    std::int64_t at = 0;
    for (const auto& [begin, end] : got[index(rank)]) {
      EXPECT_EQ(begin, at) << "rank " << rank << " of " << ranks;
      at = end;
    }
    EXPECT_EQ(at, all);
    first = last;
  }
}

TEST(Forwarding, EveryRankGetsEveryByteOnce) {
  for (const Lengths& lengths : cases()) {
    std::vector<Forwarding> plans;
    for (int rank = 0; rank < std::ssize(lengths); ++rank) plans.push_back(forwarding_of(lengths, rank, 1 << 14));
    expect_every_byte_once(lengths, plans);
  }
}

TEST(Forwarding, AChainSendsEveryByteOnceFromEachRank) {
  constexpr std::int64_t length = 100'001;
  for (const int root : {0, 2, 4}) {
    Lengths lengths(5, 0);
    lengths[index(root)] = length;
    std::vector<Forwarding> plans;
    for (int rank = 0; rank < 5; ++rank) {
      plans.push_back(chain_of(length, root, 5, rank, 1 << 13));
      std::int64_t sent = 0;
      for (const Forwarding::Paths& paths : plans.back().with) {
        for (const auto& hops : paths.out) {
          for (const Hop& hop : hops) sent += hop.range.elements();
        }
      }
      EXPECT_EQ(sent, (rank + 1) % 5 == root ? 0 : length);
    }
    expect_every_byte_once(lengths, plans);
  }
}

}  // namespace
}  // namespace onehop::collectives::detail
