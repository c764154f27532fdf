// Maps of small grids against the best of all maps. The lower bound is not always reached by any map.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "onehop/machine/mapping.h"

namespace {

using onehop::Grid;
using onehop::HostLayout;
using onehop::RankMap;
using Integers = std::vector<std::int64_t>;

// Goes through a two-dimensional grid position by position. Two beginnings of a map are the same to the rest of it if
// the hosts of the last row, the room left on them, and the room left on all other hosts are the same. With `rings` a
// row is periodic: its last position is a neighbour of its first.
class AllMaps {
 public:
  AllMaps(int rows, int columns, const Integers& sizes, bool rings = false)
      : positions_(rows * columns), columns_(columns), rings_(rings && columns > 2) {
    State first{std::vector<int>(static_cast<std::size_t>(columns), -1), {}, {sizes.begin(), sizes.end()}};
    std::ranges::sort(first.elsewhere);
    states_[first] = 0;
  }

  // The least edges between hosts, in both directions, if they are fewer than `limit`.
  [[nodiscard]] std::optional<std::int64_t> least_below(std::int64_t limit) {
    for (int p = 0; p < positions_; ++p) {
      std::map<State, std::int64_t> next;
      for (const auto& [state, edges] : states_) extend(state, edges, p % columns_, limit, next);
      states_ = std::move(next);
    }
    std::optional<std::int64_t> least;
    for (const auto& [state, edges] : states_) least = std::min(least.value_or(edges), edges);
    return least;
  }

 private:
  struct State {
    std::vector<int> row;        // which of the hosts below the last position of each column is on; -1: none yet
    std::vector<int> left;       // room on these hosts, in the order in which they appear in the row
    std::vector<int> elsewhere;  // room on the other hosts that are not full, sorted
    friend auto operator<=>(const State&, const State&) = default;
  };

  void extend(const State& state, std::int64_t edges, int column, std::int64_t limit,
              std::map<State, std::int64_t>& next) const {
    const auto at = static_cast<std::size_t>(column);
    const auto place = [&](State changed, int host) {
      --changed.left[static_cast<std::size_t>(host)];
      const int above = changed.row[at];
      const int before = column > 0 ? changed.row[at - 1] : -1;
      const int behind = rings_ && column == columns_ - 1 ? changed.row.front() : -1;
      std::int64_t cost = edges;
      for (const int neighbour : {above, before, behind}) cost += neighbour >= 0 && neighbour != host ? 2 : 0;
      if (cost >= limit) return;
      changed.row[at] = host;
      const auto [found, is_new] = next.try_emplace(renumbered(changed), cost);
      if (!is_new) found->second = std::min(found->second, cost);
    };
    for (int host = 0; host < std::ssize(state.left); ++host) {
      if (state.left[static_cast<std::size_t>(host)] > 0) place(state, host);
    }
    for (std::size_t i = 0; i < state.elsewhere.size(); ++i) {
      if (i > 0 && state.elsewhere[i] == state.elsewhere[i - 1]) continue;
      State opened = state;
      opened.left.push_back(opened.elsewhere[i]);
      opened.elsewhere.erase(opened.elsewhere.begin() + static_cast<std::ptrdiff_t>(i));
      place(opened, static_cast<int>(opened.left.size()) - 1);
    }
  }

  static State renumbered(const State& state) {
    State result{{}, {}, state.elsewhere};
    std::vector<int> number(state.left.size(), -1);
    for (const int host : state.row) {
      int found = -1;
      if (host >= 0) {
        int& mine = number[static_cast<std::size_t>(host)];
        if (mine < 0) {
          mine = static_cast<int>(result.left.size());
          result.left.push_back(state.left[static_cast<std::size_t>(host)]);
        }
        found = mine;
      }
      result.row.push_back(found);
    }
    for (std::size_t host = 0; host < number.size(); ++host) {
      if (number[host] < 0 && state.left[host] > 0) result.elsewhere.push_back(state.left[host]);
    }
    std::ranges::sort(result.elsewhere);
    return result;
  }

  int positions_;
  int columns_;
  bool rings_;
  std::map<State, std::int64_t> states_;
};

Integers hosts_of(std::int64_t positions, std::int64_t per_host) {
  Integers sizes;
  for (std::int64_t left = positions; left > 0; left -= sizes.back()) sizes.push_back(std::min(left, per_host));
  return sizes;
}

TEST(MapExact, MapsOfSmallGridsAreTheBest) {
  for (int rows = 2; rows <= 5; ++rows) {
    for (int columns = 2; columns <= std::min(rows, 4); ++columns) {
      for (int per_host = 2; per_host <= rows * columns / 2; ++per_host) {
        const Integers sizes = hosts_of(rows * columns, per_host);
        const RankMap map = Grid{{rows, columns}}.map(HostLayout::of_sizes(sizes));
        const std::int64_t edges = map.cost().edges_between_hosts;
        const auto least = AllMaps(rows, columns, sizes).least_below(edges + 2);
        EXPECT_EQ(least, edges) << rows << "x" << columns << " with " << per_host << " per host";
      }
    }
  }
}

// No map reaches the bounds of these grids: they do not know which shapes fit together.
TEST(MapExact, MapsAboveTheBoundAreTheBest) {
  struct Case {
    int rows, columns;
    bool rings;
    Integers sizes;
    std::int64_t least;
  };
  for (const Case& each :
       {Case{6, 5, false, hosts_of(30, 4), 42}, Case{9, 4, false, hosts_of(36, 4), 48}, Case{7, 3, true, {7, 7, 7}, 20},
        Case{6, 5, true, {9, 9, 9, 3}, 36}, Case{7, 5, true, {11, 11, 11, 2}, 34}}) {
    const RankMap map = Grid{{each.rows, each.columns}, {false, each.rings}}.map(HostLayout::of_sizes(each.sizes));
    if (map.lower_bound) {
      EXPECT_LT(*map.lower_bound, each.least);
    }
    EXPECT_EQ(map.cost().edges_between_hosts, each.least);
    EXPECT_FALSE(AllMaps(each.rows, each.columns, each.sizes, each.rings).least_below(each.least));
  }
}

}  // namespace
