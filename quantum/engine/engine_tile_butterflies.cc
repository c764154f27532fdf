// Builds the steps of butterflies. With two states, a step also makes the products that belong to its butterflies:
// both states are then loaded and stored once for both.
#include <algorithm>
#include <bit>
#include <optional>
#include <tuple>

#include "quantum/engine/engine_tile_builder.h"

namespace onehop::quantum {

// A butterfly of a layer with the probe that comes before it on its bit.
template <typename T>
struct TileProgram<T>::Builder::Turn {
  // Steps work on lane bits, on bits of a block, or on bits beyond, in this order.
  enum class Place : std::uint8_t { lane, block, beyond };

  Place place = Place::lane;
  Butterfly butterfly;
  std::optional<Probe> probe;

  // Butterflies of one step have equal kinds.
  [[nodiscard]] std::tuple<Place, bool> kind() const { return {place, place != Place::lane && !probe}; }
};

template <typename T>
void TileProgram<T>::Builder::flush_turns() {
  const std::vector<Probe> probes = flush_bit_probes();
  if (layer_.empty()) return;
  std::vector<Turn> turns;
  for (const Butterfly& butterfly : layer_) {
    const int at = position(butterfly.bit);
    Turn turn{at < lane_bits()            ? Turn::Place::lane
              : at < program_.block_.bits ? Turn::Place::block
                                          : Turn::Place::beyond,
              butterfly,
              {}};
    for (const Probe& probe : probes) {
      if (probe.x_mask == std::uint64_t{1} << butterfly.bit) turn.probe = probe;
    }
    turns.push_back(turn);
  }
  layer_.clear();
  std::sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) {
    return std::tuple(a.kind(), a.butterfly.bit) < std::tuple(b.kind(), b.butterfly.bit);
  });
  add_layer(turns);
}

template <typename T>
void TileProgram<T>::Builder::add_layer(std::span<const Turn> turns) {
  double cosines = 1;
  for (const Turn& turn : turns) cosines *= turn.butterfly.cosine;
  if (scale_ * cosines < smallest_within_layer()) flush_phases(false);
  const bool probed = std::any_of(turns.begin(), turns.end(), [](const Turn& turn) { return turn.probe.has_value(); });
  const std::size_t first = program_.layer_.size();
  for (const Turn& turn : turns) program_.layer_.push_back(turn.butterfly.source);
  const ScaleEvent layer{ScaleEvent::Kind::layer, 0, first, program_.layer_.size()};
  if (probed) {
    // No diagonal among the steps: the products are smaller by the scale of what comes before them.
    if (turns.front().place != Turn::Place::lane) flush_signs();
    add_steps(turns, first);
    event(layer);
    scale_ *= cosines;
  } else {
    event(layer);
    scale_ *= cosines;
    add_steps(turns, first);
  }
  if (scale_ < smallest_scale()) flush_phases();
}

// `first`: the place of the first turn in layer_.
template <typename T>
void TileProgram<T>::Builder::add_steps(std::span<const Turn> turns, std::size_t first) {
  const auto most = static_cast<std::size_t>(program_.kernels_.max_probed_turns);
  for (std::size_t begin = 0; begin < turns.size();) {
    const Turn& one = turns[begin];
    std::size_t count = 0;
    while (begin + count < turns.size() && turns[begin + count].kind() == one.kind()) ++count;
    if (one.place != Turn::Place::lane) count = next_group(count, one.probe ? most : 4);
    add_step(turns.subspan(begin, count), {ScaleEvent::Kind::probe, 0, first, first + begin});
    begin += count;
  }
}

// `before`: the event of a probe in this step.
template <typename T>
void TileProgram<T>::Builder::add_step(std::span<const Turn> turns, const ScaleEvent& before) {
  const bool lanes = turns.front().place == Turn::Place::lane;
  Butterflies group;
  BitProbes probes;
  for (const Turn& turn : turns) {
    const int at = position(turn.butterfly.bit) - (lanes ? 0 : lane_bits());
    const int slot = lanes ? at : group.count;
    if (!lanes) group.bits[slot] = at;
    group.tangents[slot] = static_cast<T>(turn.butterfly.tangent);
    group.sources[slot] = turn.butterfly.source;
    ++group.count;
    if (!turn.probe) continue;
    probes.bits[probes.count] = at;
    probes.to[probes.count++] = sum_of(*turn.probe, 1, before);
  }
  if (lanes) {
    flush_held();
    for (const Phase& sign : signs_) group.signs ^= in_lane(sign.mask);
    signs_.clear();
  }
  const std::size_t butterflies = program_.butterflies_.size();
  program_.butterflies_.push_back(group);
  if (probes.count == 0) return step(lanes ? StepKind::lane_butterflies : StepKind::butterflies, butterflies);
  step(lanes ? StepKind::probed_lane_butterflies : StepKind::probed_butterflies, program_.probed_butterflies_.size());
  program_.probed_butterflies_.push_back({program_.bit_probes_.size(), butterflies});
  program_.bit_probes_.push_back(probes);
}

template class TileProgram<float>::Builder;
template class TileProgram<double>::Builder;

}  // namespace onehop::quantum
