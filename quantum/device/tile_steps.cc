#include "quantum/device/tile_steps.h"

#include <algorithm>
#include <bit>
#include <complex>
#include <cstdint>
#include <utility>

#include "quantum/engine/engine_diagonal.h"

namespace onehop::quantum {
namespace {

using device::TileStep;
using device::TileStepKind;

template <typename T>
class Encoder {
 public:
  Encoder(const Pass& pass, const Items& items, std::span<const LocalOperation> operations, DeviceBytes& bytes)
      : tile_(pass.tile), items_(items), operations_(operations), bytes_(bytes) {}

  // In turn, takes all phases that may run now and all rotations, of which a step has up to three bits, and otherwise
  // the first item.
  void encode(std::vector<Item> rest) {
    while (!rest.empty()) {
      const std::size_t before = rest.size();
      rest = take(rest, ItemKind::phase);
      flush_phases();
      rest = take(rest, ItemKind::butterfly);
      flush_turns();
      if (rest.size() != before) continue;
      add(rest.front());
      rest.erase(rest.begin());
    }
  }

  TilePass<T> finish(int bits) {
    device::TileArguments& arguments = result_.arguments;
    arguments.tile = tile_;
    arguments.bits = static_cast<std::uint32_t>(std::popcount(tile_));
    arguments.low = static_cast<std::uint32_t>(std::countr_one(tile_));
    arguments.tiles = std::uint64_t{1} << (bits - std::popcount(tile_));
    const std::uint64_t high = tile_ & ~((std::uint64_t{1} << arguments.low) - 1);
    std::vector<std::uint64_t> rows;
    for (std::uint64_t r = 0; r < std::uint64_t{1} << (arguments.bits - arguments.low); ++r) {
      rows.push_back(deposit_bits(r, high));
    }
    arguments.rows = bytes_.add(std::span<const std::uint64_t>(rows));
    arguments.steps = bytes_.add(std::span<const TileStep>(steps_));
    arguments.step_count = static_cast<std::uint32_t>(steps_.size());
    arguments.probes = static_cast<std::uint32_t>(result_.results.size());
    return std::move(result_);
  }

 private:
  // Takes every item of a kind that commutes with all items left before it, of rotations one per bit.
  std::vector<Item> take(const std::vector<Item>& items, ItemKind kind) {
    std::vector<Item> rest;
    Skipped skipped;
    for (const Item& item : items) {
      if (item.kind != kind || !skipped.allows(item)) {
        skipped.add(item);
        rest.push_back(item);
      } else if (kind == ItemKind::phase) {
        add_phase(items_.phases[item.index]);
      } else {
        turns_.push_back(items_.butterflies[item.index]);
        skipped.add(item);
      }
    }
    return rest;
  }

  [[nodiscard]] std::uint32_t inside(std::uint64_t mask) const {
    return static_cast<std::uint32_t>(extract_bits(mask & tile_, tile_));
  }
  [[nodiscard]] std::uint64_t outside(std::uint64_t mask) const { return mask & ~tile_; }

  void add_phase(const Phase& phase) {
    device::TilePhase one{.re = phase.factor.real(), .im = phase.factor.imag()};
    one.mask = inside(phase.mask);
    one.outer_mask = outside(phase.mask);
    one.values = inside(phase.want);
    one.outer_values = outside(phase.want);
    one.odd = phase.when == Phase::When::odd ? 1 : 0;
    phases_.push_back(one);
  }

  void flush_phases() {
    if (phases_.empty()) return;
    TileStep step{.kind = TileStepKind::phases, .count = static_cast<std::uint32_t>(phases_.size())};
    step.data = bytes_.add(std::span<const device::TilePhase>(phases_));
    steps_.push_back(step);
    phases_.clear();
  }

  void flush_turns() {
    std::ranges::sort(turns_, {}, &Butterfly::bit);
    for (std::size_t begin = 0; begin < turns_.size(); begin += 3) {
      const std::size_t end = std::min(begin + 3, turns_.size());
      TileStep step{.kind = TileStepKind::turns, .count = static_cast<std::uint32_t>(end - begin)};
      std::vector<T> numbers;
      for (const Butterfly& turn : std::span(turns_).subspan(begin, end - begin)) {
        step.x |= inside(std::uint64_t{1} << turn.bit);
        numbers.push_back(static_cast<T>(turn.cosine));
        numbers.push_back(static_cast<T>(turn.tangent * turn.cosine));
      }
      step.data = bytes_.add(std::span<const T>(numbers));
      steps_.push_back(step);
    }
    turns_.clear();
  }

  [[nodiscard]] TileStep step_of(TileStepKind kind, std::uint64_t controls, std::uint64_t values) const {
    TileStep step{.kind = kind, .controls = inside(controls), .values = inside(values)};
    step.outer_controls = outside(controls);
    step.outer_values = outside(values);
    return step;
  }

  void add(const Item& item) {
    if (item.kind == ItemKind::pair) return add_pair(items_.pairs[item.index]);
    if (item.kind == ItemKind::dense) return add_dense(items_.dense[item.index]);
    if (item.kind == ItemKind::probe) return add_probe(items_.probes[item.index]);
    add_table(operations_[item.index]);
  }

  void add_pair(const PairOperation& op) {
    TileStep step = step_of(TileStepKind::pair, op.control_mask, op.control_values);
    step.x = inside(op.x_mask);
    step.z = inside(op.z_mask);
    step.outer_z = outside(op.z_mask);
    std::vector<T> matrices;
    for (const auto& matrix : op.matrix) matrices.insert(matrices.end(), std::begin(matrix), std::end(matrix));
    step.data = bytes_.add(std::span<const T>(matrices));
    steps_.push_back(step);
  }

  void add_dense(const Dense& dense) {
    TileStep step = step_of(TileStepKind::dense, dense.control_mask, dense.control_values);
    step.count = static_cast<std::uint32_t>(dense.bits.size());
    std::vector<std::uint32_t> places(std::size_t{1} << dense.bits.size());
    for (std::size_t b = 0; b < dense.bits.size(); ++b) {
      const std::uint32_t bit = inside(std::uint64_t{1} << dense.bits[b]);
      step.x |= bit;
      for (std::size_t row = 0; row < places.size(); ++row) places[row] |= (row >> b & 1) != 0 ? bit : 0;
    }
    const std::vector<std::complex<T>> matrix(dense.matrix.begin(), dense.matrix.end());
    step.data = bytes_.add(std::span<const std::uint32_t>(places));
    bytes_.add(std::span<const std::complex<T>>(matrix));
    steps_.push_back(step);
    result_.needs_other = true;
  }

  void add_table(const LocalOperation& op) {
    TileStep step = step_of(TileStepKind::table, op.control_mask, op.control_values);
    step.count = static_cast<std::uint32_t>(op.bits.size());
    std::vector<device::TableBit> places;
    for (const int bit : op.bits) {
      const std::uint32_t in_tile = inside(std::uint64_t{1} << bit);
      const bool is_outside = in_tile == 0;
      places.push_back(
          {static_cast<std::uint32_t>(is_outside ? bit : std::countr_zero(in_tile)), is_outside ? 1U : 0U});
    }
    const std::size_t size = std::size_t{1} << op.bits.size();
    std::vector<std::complex<T>> values;
    for (std::size_t i = 0; i < size; ++i) {
      values.emplace_back(op.kind == LocalKind::matrix ? op.values[i * size + i] : op.values[i]);
    }
    step.data = bytes_.add(std::span<const device::TableBit>(places));
    bytes_.add(std::span<const std::complex<T>>(values));
    steps_.push_back(step);
  }

  void add_probe(const Probe& probe) {
    TileStep step = step_of(TileStepKind::probe, probe.control_mask, probe.control_values);
    step.x = inside(probe.x_mask);
    step.z = inside(probe.z_mask);
    step.outer_z = outside(probe.z_mask);
    step.count = static_cast<std::uint32_t>(std::popcount(probe.x_mask & probe.z_mask)) % 4;
    step.data = result_.results.size();
    steps_.push_back(step);
    result_.results.push_back(probe.result);
    result_.factors.push_back(probe.factor);
    result_.needs_other = true;
  }

  std::uint64_t tile_;
  const Items& items_;
  std::span<const LocalOperation> operations_;
  DeviceBytes& bytes_;
  std::vector<device::TilePhase> phases_;
  std::vector<Butterfly> turns_;
  std::vector<TileStep> steps_;
  TilePass<T> result_;
};

}  // namespace

template <typename T>
TilePass<T> encode_pass(const Pass& pass, const Items& items, std::span<const LocalOperation> operations, int bits,
                        DeviceBytes& bytes) {
  Encoder<T> encoder(pass, items, operations, bytes);
  encoder.encode(pass.items);
  return encoder.finish(bits);
}

template TilePass<float> encode_pass(const Pass&, const Items&, std::span<const LocalOperation>, int, DeviceBytes&);
template TilePass<double> encode_pass(const Pass&, const Items&, std::span<const LocalOperation>, int, DeviceBytes&);

}  // namespace onehop::quantum
