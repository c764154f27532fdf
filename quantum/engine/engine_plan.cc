#include "quantum/engine/engine_plan.h"

#include <algorithm>
#include <bit>

#include "quantum/kernels/kernels.h"

namespace onehop::quantum {
namespace {

// Smaller states have too few vectors per tile for the kernels.
constexpr int min_tiled_bits = 10;

std::uint64_t low_mask(int bits) { return (std::uint64_t{1} << bits) - 1; }

// The gain from including an item in a pass, in sweeps over a tile.
int worth(const Item& item) {
  switch (item.kind) {
    case ItemKind::phase:
      return 0;
    case ItemKind::butterfly:
    case ItemKind::probe:
      return 2;
    case ItemKind::dense:
      return 4;
    default:
      return 3;
  }
}

class Grouping {
 public:
  Grouping(const Items& items, int bits, const TileSizes& sizes) : rest_(items.order), bits_(bits), sizes_(sizes) {}

  std::vector<Pass> all() {
    std::vector<Pass> passes;
    while (begin_ < rest_.size()) passes.push_back(next());
    return passes;
  }

 private:
  struct Choice {
    std::uint64_t tile = 0;
    int worth = -1;
  };

  // Extends the tile by the bits that items mix, in order, and returns it with the worth of the items that it includes.
  [[nodiscard]] Choice grow(std::uint64_t tile) const {
    Skipped skipped;
    int worth_done = 0;
    const std::uint64_t all = low_mask(bits_);
    for (std::size_t i = begin_; i < rest_.size(); ++i) {
      const Item& item = rest_[i];
      if (item.kind == ItemKind::direct || !skipped.allows(item)) {
        skipped.add(item);
        if (skipped.mixed == all) break;
        continue;
      }
      if ((item.mixed & ~tile) != 0) {
        if (std::popcount(tile | item.mixed) > sizes_.tile) {
          skipped.add(item);
          if (skipped.mixed == all) break;
          continue;
        }
        tile |= item.mixed;
      }
      worth_done += worth(item);
    }
    return {tile, worth_done};
  }

  [[nodiscard]] std::uint64_t best_tile() const {
    const std::uint64_t low = low_mask(sizes_.low);
    Choice best = grow(low);
    const int high = sizes_.tile - sizes_.low;
    for (int first = sizes_.low; first + high <= bits_; ++first) {
      const Choice choice = grow(low | (low_mask(high) << first));
      if (choice.worth > best.worth) best = choice;
    }
    // Fill up with low bits, so that tiles are large and their rows long.
    for (int bit = 0; bit < bits_ && std::popcount(best.tile) < sizes_.tile; ++bit)
      best.tile |= std::uint64_t{1} << bit;
    return best.tile;
  }

  Pass next() {
    Pass pass;
    if (rest_[begin_].kind == ItemKind::direct) {
      pass.items.push_back(rest_[begin_++]);
      return pass;
    }
    pass.tile = best_tile();
    Skipped skipped;
    std::vector<Item> passed_over;
    std::size_t i = begin_;
    for (; i < rest_.size() && skipped.mixed != low_mask(bits_); ++i) {
      const Item& item = rest_[i];
      if (item.kind != ItemKind::direct && (item.mixed & ~pass.tile) == 0 && skipped.allows(item)) {
        pass.items.push_back(item);
      } else {
        skipped.add(item);
        passed_over.push_back(item);
      }
    }
    // Skipped items move to the front of the remaining ones.
    begin_ = i - passed_over.size();
    std::copy(passed_over.begin(), passed_over.end(), rest_.begin() + static_cast<std::ptrdiff_t>(begin_));
    return pass;
  }

  std::vector<Item> rest_;  // from begin_ on
  std::size_t begin_ = 0;
  int bits_;
  TileSizes sizes_;
};

// States from `least_bits_in_parts` up to 2 MiB are one tile, whose parts the threads share: one pass is then worth
// more than tiles that fit a second-level cache.
bool is_shared(int bits, bool is_double) { return bits >= least_bits_in_parts && bits <= (is_double ? 17 : 18); }

}  // namespace

TileSizes tile_sizes(int bits, int bytes_per_amplitude) {
  if (bits < min_tiled_bits) return {};
  // Half a megabyte of amplitudes leaves room for tables in an L2 cache of one megabyte.
  const bool is_double = bytes_per_amplitude > 8;
  const int tile = is_shared(bits, is_double) ? bits : std::min(bits, is_double ? 15 : 16);
  return {.tile = tile,
          .low = std::min(tile, is_double ? 6 : 7),
          .matrices = is_double ? kernels<double>().prefer_dense : kernels<float>().prefer_dense,
          // A layer of such rotations stays within the range of double precision.
          .steepest_varying = is_double ? 1e6 : default_steepest_varying};
}

TileSizes tile_sizes_of_two(int bits, int bytes_per_amplitude) {
  TileSizes sizes = tile_sizes(bits, bytes_per_amplitude);
  const bool is_double = bytes_per_amplitude > 8;
  if (sizes.tile > 0 && !is_shared(bits, is_double)) sizes.tile = std::min(bits, is_double ? 14 : 15);
  return sizes;
}

TileSizes device_tile_sizes(int bits, bool is_double, int states) {
  const int tile = std::min(bits, (is_double ? 12 : 13) - states);
  return {.tile = tile, .low = std::min(tile, 4), .matrices = true, .steepest_varying = 1e6};
}

std::vector<Pass> make_passes(const Items& items, int bits, const TileSizes& sizes) {
  return Grouping(items, bits, sizes).all();
}

}  // namespace onehop::quantum
