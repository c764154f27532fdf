#include "quantum/engine/engine_plan.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "quantum/kernels/kernels.h"

namespace onehop::quantum {
namespace {

// Below this, tiles have too few vectors for what is done with them.
constexpr int min_tiled_bits = 10;

std::uint64_t low_mask(int bits) { return (std::uint64_t{1} << bits) - 1; }

// What has been left behind while going through the items in order, and what it forbids to those that follow.
struct Left {
  std::uint64_t mixed = 0;    // nothing may pass here
  std::uint64_t watched = 0;  // only what watches may pass here

  [[nodiscard]] bool allows(const Item& item) const {
    return (item.mixed & (mixed | watched)) == 0 && (item.watched & mixed) == 0;
  }
  void leave(const Item& item) {
    mixed |= item.mixed;
    watched |= item.watched;
  }
};

// Worth of having an item done, in sweeps over a tile.
int worth(const Item& item) {
  switch (item.kind) {
    case ItemKind::phase:
      return 0;
    case ItemKind::butterfly:
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

  // What a tile gets done that begins with the bits `tile` and grows, while it may, by the bits that items ask for.
  [[nodiscard]] Choice grown(std::uint64_t tile) const {
    Left left;
    int worth_done = 0;
    const std::uint64_t all = low_mask(bits_);
    for (std::size_t i = begin_; i < rest_.size(); ++i) {
      const Item& item = rest_[i];
      if (item.kind == ItemKind::direct || !left.allows(item)) {
        left.leave(item);
        if (left.mixed == all) break;
        continue;
      }
      if ((item.mixed & ~tile) != 0) {
        if (std::popcount(tile | item.mixed) > sizes_.tile) {
          left.leave(item);
          if (left.mixed == all) break;
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
    Choice best = grown(low);
    const int high = sizes_.tile - sizes_.low;
    for (int first = sizes_.low; first + high <= bits_; ++first) {
      const Choice choice = grown(low | (low_mask(high) << first));
      if (choice.worth > best.worth) best = choice;
    }
    // Fill up, so that tiles are large and their rows long.
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
    Left left;
    std::vector<Item> behind;
    std::size_t i = begin_;
    for (; i < rest_.size() && left.mixed != low_mask(bits_); ++i) {
      const Item& item = rest_[i];
      if (item.kind != ItemKind::direct && (item.mixed & ~pass.tile) == 0 && left.allows(item)) {
        pass.items.push_back(item);
      } else {
        left.leave(item);
        behind.push_back(item);
      }
    }
    // What was left behind goes where the next pass begins.
    begin_ = i - behind.size();
    std::copy(behind.begin(), behind.end(), rest_.begin() + static_cast<std::ptrdiff_t>(begin_));
    return pass;
  }

  std::vector<Item> rest_;  // from begin_ on
  std::size_t begin_ = 0;
  int bits_;
  TileSizes sizes_;
};

}  // namespace

TileSizes tile_sizes(int bits, int bytes_per_amplitude) {
  if (bits < min_tiled_bits) return {};
  // Half a megabyte of amplitudes, which leaves room for tables in a second-level cache of one.
  const int tile = std::min(bits, bytes_per_amplitude > 8 ? 15 : 16);
  const bool is_double = bytes_per_amplitude > 8;
  return {.tile = tile,
          .low = std::min(tile, is_double ? 6 : 7),
          .matrices = is_double ? kernels<double>().prefer_dense : kernels<float>().prefer_dense};
}

std::vector<Pass> make_passes(const Items& items, int bits, const TileSizes& sizes) {
  return Grouping(items, bits, sizes).all();
}

}  // namespace onehop::quantum
