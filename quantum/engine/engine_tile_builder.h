// Builds tile programs: turns the items of a pass into steps. engine_tile_build.cc, engine_tile_butterflies.cc,
// engine_tile_matrices.cc and engine_tile_probe.cc include it.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "quantum/engine/engine_tile.h"
#include "quantum/engine/permutation_gates.h"
#include "quantum/engine/permutation_groups.h"

namespace onehop::quantum {

// Schedules the items of a pass. In turn, takes all items that mix bits and may run now, then all phases that may run,
// so that phases merge into as few sweeps as possible.
template <typename T>
class TileProgram<T>::Builder {
 public:
  Builder(TileProgram& program, const Items& items, std::span<const LocalOperation> operations)
      : program_(program), items_(items), operations_(operations) {}

  void build(std::vector<Item> rest) {
    while (!rest.empty()) {
      const std::size_t before = rest.size();
      rest = take(rest, [&](const Item& item) { return is_bit_probe(item); });
      rest = take(rest, is_butterfly);
      if (layer_.size() == 1 && waiting_probes_.empty()) rest = join_butterflies(std::move(rest));
      flush_turns();
      if (rest.size() != before) continue;
      take_permutations(rest);
      if (rest.size() != before) continue;
      rest = take_one(rest);
      if (rest.size() != before) continue;
      rest = take(rest,
                  [](const Item& item) { return is_phase(item) || (item.kind == ItemKind::probe && item.mixed == 0); });
      flush_diagonal_probes();
      flush_phases();
    }
    flush_held();
    flush_signs();
    program_.last_scale_ = static_cast<T>(scale_);
    auto& steps = program_.steps_;
    program_.permutes_on_scatter_ &= !steps.empty() && steps.back().kind == StepKind::permute;
    if (program_.permutes_on_scatter_) steps.pop_back();
  }

  // Butterflies omit their cosines, so amplitudes grow until a diagonal rescales them. This limit is far from overflow.
  static double smallest_scale() { return sizeof(T) == sizeof(float) ? 1e-12 : 1e-100; }

  // The norm of the unscaled state is 1 / scale_ at most, and must stay in the range of T while a layer runs. A layer
  // that would exceed it after earlier ones starts at scale 1: up to 18 butterflies of tangent 100 then fit.
  static double smallest_within_layer() { return sizeof(T) == sizeof(float) ? 1e-36 : 1e-300; }

 private:
  [[nodiscard]] static bool is_butterfly(const Item& item) { return item.kind == ItemKind::butterfly; }
  [[nodiscard]] static bool is_phase(const Item& item) { return item.kind == ItemKind::phase; }

  // Takes every wanted item that commutes with all skipped items before it. Returns the others.
  template <typename Wanted>
  std::vector<Item> take(const std::vector<Item>& items, const Wanted& wanted) {
    std::vector<Item> rest;
    Skipped skipped;
    for (const Item& item : items) {
      if (!wanted(item) || !skipped.allows(item)) {
        skipped.add(item);
        rest.push_back(item);
      } else if (item.kind == ItemKind::phase) {
        phases_.push_back(items_.phases[item.index]);
      } else if (item.kind == ItemKind::probe) {
        waiting_probes_.push_back(items_.probes[item.index]);
      } else {
        layer_.push_back(items_.butterflies[item.index]);
        skipped.add(item);  // a layer has one butterfly per bit
      }
    }
    return rest;
  }

  // Takes all permutation gates that may run now, in order.
  void take_permutations(std::vector<Item>& items) {
    Skipped skipped;
    PermutationGates gates;
    std::vector<Item> rest;
    for (const Item& item : items) {
      if (item.kind == ItemKind::pair && skipped.allows(item) && PermutationGates::takes(items_.pairs[item.index])) {
        gates.add(items_.pairs[item.index]);
      } else {
        skipped.add(item);
        rest.push_back(item);
      }
    }
    if (gates.empty()) return;
    items = std::move(rest);
    if (gates.operations().size() < min_permutation_gates) {
      for (const PairOperation& op : gates.operations()) add_pair(op);
      return;
    }
    const PermutationGates::Map map = gates.source(program_.tile_);
    Permutation permutation;
    for (std::size_t v = 0; v < std::size_t{1} << (program_.shape_.bits - lane_bits()); ++v) {
      permutation.step.sources.push_back(static_cast<std::uint32_t>(map.of(v << lane_bits())));
    }
    for (std::size_t l = 0; l < std::size_t{1} << lane_bits(); ++l) {
      permutation.step.lane_sources.push_back(static_cast<std::uint32_t>(map.of(l)));
    }
    group_vectors(permutation.step, lane_bits());
    permutation.flip = static_cast<std::uint32_t>(map.flip);
    for (const auto& [mask, value, flip] : map.conditional) {
      permutation.conditional.push_back({mask, value, static_cast<std::uint32_t>(flip)});
    }
    step(StepKind::permute, program_.permutations_.size());
    program_.permutations_.push_back(std::move(permutation));
  }

  // Takes the first item that may run now and is neither a butterfly nor a phase. Returns the others.
  std::vector<Item> take_one(std::vector<Item> items) {
    Skipped skipped;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Item item = items[i];
      const bool diagonal_probe = item.kind == ItemKind::probe && item.mixed == 0;
      if (item.kind == ItemKind::butterfly || item.kind == ItemKind::phase || diagonal_probe || !skipped.allows(item)) {
        skipped.add(item);
        continue;
      }
      items.erase(items.begin() + static_cast<std::ptrdiff_t>(i));
      if (item.kind == ItemKind::pair) add_pair(items_.pairs[item.index]);
      if (item.kind == ItemKind::dense) add_dense(items_.dense[item.index]);
      if (item.kind == ItemKind::table) add_table(operations_[item.index]);
      if (item.kind == ItemKind::probe) add_pair_probe(items_.probes[item.index]);
      break;
    }
    return items;
  }

  void step(StepKind kind, std::size_t index) {
    flush_held();
    if (kind != StepKind::lane_butterflies && kind != StepKind::probed_lane_butterflies) flush_signs();
    program_.steps_.push_back({kind, index});
  }

  void event(const ScaleEvent& event) { program_.scale_events_.push_back(event); }

  // --- Probes, in engine_tile_probe.cc ---

  [[nodiscard]] bool is_bit_probe(const Item& item) const;
  ProbeSum sum_of(const Probe& probe, double sign = 1, ScaleEvent event = {ScaleEvent::Kind::probe});
  std::vector<Probe> flush_bit_probes();
  void add_bit_probes();
  void add_vector_probes(std::span<const Probe> probes);
  void flush_diagonal_probes();
  void add_pair_probe(const Probe& probe, bool signs_matter = true);

  // --- Butterflies, and the probes on their bits, in engine_tile_butterflies.cc ---

  struct Turn;
  void flush_turns();
  void add_layer(std::span<const Turn> turns);
  void add_steps(std::span<const Turn> turns, std::size_t first);
  void add_step(std::span<const Turn> turns, const ScaleEvent& before);
  // The number of butterflies or probes of the next step, if steps have at most `most`: all steps have about as many.
  [[nodiscard]] static std::size_t next_group(std::size_t left, std::size_t most) {
    const std::size_t steps = (left + most - 1) / most;
    return (left + steps - 1) / steps;
  }

  // Whether the phases are only Z gates on lane bits. A lane_butterflies step can apply such signs without a sweep of
  // its own, so they wait for one.
  [[nodiscard]] bool only_signs() const {
    return std::all_of(phases_.begin(), phases_.end(), [&](const Phase& phase) {
      return phase.source < 0 && phase.factor == -1.0 && phase.want == phase.mask && std::has_single_bit(phase.mask) &&
             in_lane(phase.mask) != 0;
    });
  }

  void flush_signs() {
    if (!signs_.empty()) flush_phases(false);
  }

  void flush_phases(bool may_wait = true) {
    phases_.insert(phases_.end(), signs_.begin(), signs_.end());
    signs_.clear();
    if (phases_.empty() && scale_ == 1) return;
    if (may_wait && !phases_.empty() && scale_ >= smallest_scale() && only_signs()) {
      flush_held();
      return signs_.swap(phases_);
    }
    flush_held();
    // The step also makes products that come just before it.
    int probes = -1;
    if (!program_.steps_.empty() && program_.steps_.back().kind == StepKind::diagonal_probes) {
      probes = static_cast<int>(program_.steps_.back().index);
      program_.steps_.pop_back();
    }
    step(StepKind::diagonal, program_.diagonals_.size());
    program_.steps_.back().probes = probes;
    event({ScaleEvent::Kind::diagonal, program_.diagonals_.size()});
    program_.diagonals_.emplace_back(std::move(phases_), scale_);
    phases_.clear();
    scale_ = 1;
  }

  // --- Conversion of masks of the whole index to masks of the vector number and of the lanes ---

  [[nodiscard]] int lane_bits() const { return program_.shape_.lane_bits; }
  [[nodiscard]] int position(int bit) const { return std::popcount(program_.tile_ & ((std::uint64_t{1} << bit) - 1)); }
  [[nodiscard]] std::size_t inside(std::uint64_t mask) const {
    return extract_bits(mask & program_.tile_, program_.tile_);
  }
  [[nodiscard]] unsigned in_lane(std::uint64_t mask) const {
    return static_cast<unsigned>(inside(mask) & ((1U << lane_bits()) - 1));
  }
  [[nodiscard]] std::size_t in_vector(std::uint64_t mask) const { return inside(mask) >> lane_bits(); }
  [[nodiscard]] Outside outside(std::uint64_t controls, std::uint64_t values, std::uint64_t sign) const {
    const std::uint64_t other = ~program_.tile_;
    return {controls & other, values & other, sign & other};
  }

  // Whether the pair can merge with another one to a two_pairs step: on two bits outside the vectors, with the sign of
  // the same bits, and without controls.
  [[nodiscard]] bool can_merge(const PairOperation& op) const {
    return std::popcount(op.x_mask) == 2 && op.z_mask == op.x_mask && op.control_mask == 0 && in_lane(op.x_mask) == 0;
  }

  // --- Pairs, matrices and tables, in engine_tile_matrices.cc ---

  void add_pair(const PairOperation& op);
  void flush_held();
  void add_one_pair(const PairOperation& op);
  void fill_coefficients(PairStep<T>& s, const PairOperation& op) const;
  // A matrix on two bits, at least one of which is a lane bit.
  void add_lane_matrix(const Dense& dense);
  // The dense kernel works only on bits of the vector number, so lane bits are swapped with such bits before and after.
  void add_dense(const Dense& dense);
  // If the only butterfly of the layer has one other to follow it, makes one step of both and of the phases between
  // them. A chain of butterflies, as in a QFT, so takes two sweeps for two of them, not four. Returns the items left.
  std::vector<Item> join_butterflies(std::vector<Item> items);
  void add_table(const LocalOperation& op);

  // From this many permutation gates on, one combined step replaces a sweep per gate.
  static constexpr std::size_t min_permutation_gates = 3;

  TileProgram& program_;
  const Items& items_;
  std::span<const LocalOperation> operations_;
  std::vector<Butterfly> layer_;
  std::vector<Phase> phases_;
  std::vector<Probe> waiting_probes_;
  std::vector<Phase> signs_;  // waiting for the next step, see only_signs()
  std::optional<PairOperation> held_;
  double scale_ = 1;
};

}  // namespace onehop::quantum
