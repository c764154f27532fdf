// Makes tile programs: their shapes, and their steps with the builder.
#include <algorithm>
#include <bit>

#include "quantum/engine/engine_tile_builder.h"

namespace onehop::quantum {
namespace {

// With rows of this size, the tables of a diagonal for a few conditions on the row's number stay in L1.
constexpr int max_row_bits = 8;
constexpr std::size_t gap_bytes = 128;
// The number of parts does not depend on the threads, so that sums over them have the same bits.
constexpr std::size_t most_parts = 4;

TileShape shape_of(std::uint64_t tile, int lane_bits, std::size_t number_bytes) {
  TileShape shape;
  shape.bits = std::popcount(tile);
  shape.lane_bits = lane_bits;
  shape.row_bits = std::min(std::countr_one(tile), max_row_bits);
  shape.row_gap = shape.bits > shape.row_bits ? gap_bytes / number_bytes : 0;
  return shape;
}

}  // namespace

template <typename T>
TileProgram<T>::TileProgram(const Pass& pass, const Items& items, std::span<const LocalOperation> operations, int bits,
                            const Kernels<T>& kernels, bool permutes_on_scatter)
    : bits_(bits),
      tile_(pass.tile),
      shape_(shape_of(pass.tile, kernels.lane_bits, sizeof(T))),
      kernels_(kernels),
      permutes_on_scatter_(permutes_on_scatter) {
  const std::uint64_t high = tile_ & ~((std::uint64_t{1} << shape_.row_bits) - 1);
  for (std::size_t r = 0; r < shape_.rows(); ++r) offsets_.push_back(deposit_bits(r, high));
  if (tiles() == 1 && bits_ >= least_bits_in_parts) parts_ = most_parts;
  block_ = shape_;
  block_.bits = std::min(shape_.bits, std::max(shape_.row_bits, sizeof(T) == sizeof(float) ? 11 : 10));
  Builder(*this, items, operations).build(pass.items);
  find_stretches();
  if (!probes_.empty()) count_multiply_adds();
}

template <typename T>
double TileProgram<T>::cosines_of(const Items& items, std::size_t begin, std::size_t end) const {
  double cosines = 1;
  for (std::size_t i = begin; i < end; ++i) cosines *= items.butterflies[static_cast<std::size_t>(layer_[i])].cosine;
  return cosines;
}

template <typename T>
bool TileProgram<T>::refill(const Items& items) {
  for (Butterflies& group : butterflies_) {
    for (int b = 0; b < 4; ++b) {
      if (group.sources[b] < 0) continue;
      group.tangents[b] = static_cast<T>(items.butterflies[static_cast<std::size_t>(group.sources[b])].tangent);
    }
  }
  double scale = 1;
  for (std::size_t e = 0; e < scale_events_.size(); ++e) {
    const ScaleEvent& event = scale_events_[e];
    switch (event.kind) {
      case ScaleEvent::Kind::layer: {
        const double cosines = cosines_of(items, event.begin, event.end);
        // The builder would add a diagonal before the layer, or after it.
        if (scale != 1 && scale * cosines < Builder::smallest_within_layer()) return false;
        scale *= cosines;
        const bool rescaled = e + 1 < scale_events_.size() && scale_events_[e + 1].kind == ScaleEvent::Kind::diagonal;
        if (scale < Builder::smallest_scale() && !rescaled) return false;
        break;
      }
      case ScaleEvent::Kind::diagonal:
        diagonals_[event.index].refill(items, scale, shape_);
        scale = 1;
        break;
      case ScaleEvent::Kind::probe: {
        const double at_probe = scale * cosines_of(items, event.begin, event.end);
        // The builder would make the products before the layer.
        if (event.begin != event.end && at_probe < Builder::smallest_scale()) return false;
        probe_scales_[event.index] = at_probe * at_probe;
        break;
      }
    }
  }
  last_scale_ = static_cast<T>(scale);
  return true;
}

template class TileProgram<float>;
template class TileProgram<double>;

}  // namespace onehop::quantum
