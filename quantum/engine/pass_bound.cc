// A lower bound on passes: a search over the bits that tiles leave out.
//
// A pass runs the items that mix none of the bits outside its tile, in an order that commutation allows. A tile has
// room for m bits above the lowest ones, so that of any m + j such bits it leaves out at least j. Whoever forgets all
// others that it leaves out allows more items: the least number of passes that leave out j of m + j chosen bits is a
// lower bound. For small j and some choices all sequences of such sets are searched: it suffices to run every item that
// can run, and to follow only those results that no other result contains.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "quantum/engine/engine_plan.h"
#include "quantum/engine/engine_run.h"

namespace onehop::quantum {
namespace {

// The approximate number of items that a search looks at, the most sets of bits to choose from in each pass, the most
// results of as many passes to follow, the most bits left out that count, and the most choices of bits for each number.
constexpr std::int64_t max_steps = 20'000'000;
constexpr std::size_t max_sets = 2500;
constexpr std::size_t max_results = 2000;
constexpr int max_left_out = 5;
constexpr int max_windows = 3;

using Words = std::vector<std::uint64_t>;  // a bit for each item

bool contains(const Words& whole, const Words& part) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    if ((part[i] & ~whole[i]) != 0) return false;
  }
  return true;
}

int count(const Words& words) {
  int sum = 0;
  for (const std::uint64_t word : words) sum += std::popcount(word);
  return sum;
}

// All masks of `size` of the bits from `first` to `last`; empty if there are too many.
std::vector<std::uint64_t> masks_of(int first, int last, int size) {
  std::vector<std::uint64_t> found{0};
  for (int k = 0; k < size; ++k) {
    std::vector<std::uint64_t> longer;
    for (const std::uint64_t one : found) {
      for (int bit = std::max(first, static_cast<int>(std::bit_width(one))); bit <= last; ++bit) {
        longer.push_back(one | std::uint64_t{1} << bit);
      }
    }
    found = std::move(longer);
    if (found.size() > max_sets * static_cast<std::size_t>(last + 1)) return {};
  }
  return found.size() > max_sets ? std::vector<std::uint64_t>{} : found;
}

class Search {
 public:
  Search(std::vector<Item> items, int bits, const TileSizes& sizes)
      : items_(std::move(items)), bits_(bits), sizes_(sizes) {}

  // The least number of passes if every pass before the last leaves out `left_out` of the bits from `first` to `last`
  // and has all others, or a smaller number if the search takes too long.
  [[nodiscard]] int passes(int left_out, int first, int last) const {
    const Words none((items_.size() + 63) / 64, 0);
    if (can_end(none)) return 1;
    const std::vector<std::uint64_t> masks = masks_of(first, last, left_out);
    if (masks.empty()) return 1;
    std::vector<Words> level{none};
    std::int64_t steps = 0;
    for (int taken = 1;; ++taken) {
      std::set<Words> reached;
      for (const Words& one : level) {
        for (const std::uint64_t mask : masks) {
          reached.insert(run(one, mask));
          steps += static_cast<std::int64_t>(items_.size());
          if (steps > max_steps) return taken + 1;  // no result of taken - 1 passes could end
        }
      }
      level = largest({reached.begin(), reached.end()});
      if (level.size() > max_results) return taken + 1;
      if (std::any_of(level.begin(), level.end(), [&](const Words& one) { return can_end(one); })) return taken + 1;
    }
  }

  // Every pass covers the lowest bits, and as many others as fit in a tile.
  [[nodiscard]] int covered() const {
    const int others = std::popcount(mixed_by_rest(Words((items_.size() + 63) / 64, 0)));
    const int room = sizes_.tile - sizes_.low;
    return std::max(1, (others + room - 1) / room);
  }

 private:
  // The bits above the lowest ones that the items that are not done mix.
  [[nodiscard]] std::uint64_t mixed_by_rest(const Words& done) const {
    std::uint64_t mixed = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if ((done[i / 64] >> (i % 64) & 1) == 0) mixed |= items_[i].mixed;
    }
    return mixed >> sizes_.low << sizes_.low;
  }

  // Whether one more pass suffices.
  [[nodiscard]] bool can_end(const Words& done) const {
    return std::popcount(mixed_by_rest(done)) <= sizes_.tile - sizes_.low;
  }

  // Runs every item that mixes no bit of `outside` and commutes with all earlier ones that have not run.
  [[nodiscard]] Words run(Words done, std::uint64_t outside) const {
    const std::uint64_t all = (std::uint64_t{1} << bits_) - 1;
    Skipped skipped;
    for (std::size_t i = 0; i < items_.size() && skipped.mixed != all; ++i) {
      if ((done[i / 64] >> (i % 64) & 1) != 0) continue;
      const Item& item = items_[i];
      if (skipped.allows(item) && (item.mixed & outside) == 0) {
        done[i / 64] |= std::uint64_t{1} << (i % 64);
      } else {
        skipped.add(item);
      }
    }
    return done;
  }

  static std::vector<Words> largest(std::vector<Words> all) {
    std::stable_sort(all.begin(), all.end(), [](const Words& a, const Words& b) { return count(a) > count(b); });
    std::vector<Words> kept;
    for (Words& one : all) {
      if (kept.size() > max_results) break;
      if (std::any_of(kept.begin(), kept.end(), [&](const Words& other) { return contains(other, one); })) continue;
      kept.push_back(std::move(one));
    }
    return kept;
  }

  std::vector<Item> items_;
  int bits_;
  TileSizes sizes_;
};

}  // namespace

int passes_at_least(const Items& items, int bits, const TileSizes& sizes) {
  std::vector<Item> in_tiles;
  for (const Item& item : items.order) {
    if (item.kind != ItemKind::direct) in_tiles.push_back(item);
  }
  const int direct = static_cast<int>(items.order.size() - in_tiles.size());  // each is a pass of its own
  if (in_tiles.empty()) return direct;
  const Search search(std::move(in_tiles), bits, sizes);
  int most = search.covered();
  for (int left_out = 1; left_out <= std::min(bits - sizes.tile, max_left_out); ++left_out) {
    const int length = sizes.tile - sizes.low + left_out;
    const int places = bits - sizes.low - length;  // of a window of consecutive bits, after the first
    const int windows = std::min(places + 1, max_windows);
    for (int w = 0; w < windows; ++w) {
      const int first = sizes.low + (windows == 1 ? 0 : w * places / (windows - 1));
      most = std::max(most, search.passes(left_out, first, first + length - 1));
    }
  }
  return direct + most;
}

double count_passes_at_least(int bits, std::span<const LocalOperation> operations, int bytes_per_amplitude) {
  const TileSizes sizes = tile_sizes(bits, bytes_per_amplitude);
  const PassList list = make_pass_list(bits, operations, sizes);
  const auto taken = static_cast<int>(list.passes.size());
  return sizes.tile == 0 ? taken : std::min(taken, passes_at_least(list.items, bits, sizes));
}

}  // namespace onehop::quantum
