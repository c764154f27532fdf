// Derivatives: products of two tiles with Pauli strings between them.
#include <bit>

#include "quantum/engine/engine_tile_builder.h"

namespace onehop::quantum {
namespace {

// (-1)^parity(i & sign) where the controls hold, else 0.
double factor_of(std::size_t i, std::size_t sign, std::size_t controls, std::size_t control_values) {
  if ((i & controls) != control_values) return 0;
  return std::popcount(i & sign) % 2 != 0 ? -1 : 1;
}

}  // namespace

// --- Building. Amplitudes are smaller by scale_ than they should be, and so are both factors of a product. ---

// Whether the item is a probe of Y on one bit, without controls. Several of them share a sweep.
template <typename T>
bool TileProgram<T>::Builder::is_bit_probe(const Item& item) const {
  if (item.kind != ItemKind::probe || !std::has_single_bit(item.mixed) || item.watched != 0) return false;
  return items_.probes[item.index].z_mask == item.mixed;
}

template <typename T>
typename TileProgram<T>::ProbeSum TileProgram<T>::Builder::sum_of(const Probe& probe, double sign, ScaleEvent event) {
  event.index = program_.probes_.size();
  const double scale = scale_ * program_.cosines_of(items_, event.begin, event.end);
  program_.probes_.push_back(probe.result);
  program_.probe_scales_.push_back(scale * scale);
  program_.scale_events_.push_back(event);
  return {event.index, sign * probe.factor};
}

// Adds the probes that are not made in the sweep of a butterfly of the layer, and returns the others: at most one of
// each bit.
template <typename T>
std::vector<Probe> TileProgram<T>::Builder::flush_bit_probes() {
  if (waiting_probes_.empty()) return {};
  std::uint64_t turned = 0;
  double scale = scale_;
  for (const Butterfly& butterfly : layer_) {
    turned |= std::uint64_t{1} << butterfly.bit;
    scale *= butterfly.cosine;
  }
  // Products in the middle of a layer of steep rotations would leave the range of T.
  if (scale < smallest_scale()) turned = 0;
  std::vector<Probe> with_turns;
  std::erase_if(waiting_probes_, [&](const Probe& probe) {
    if ((probe.x_mask & turned) == 0) return false;
    turned ^= probe.x_mask;
    with_turns.push_back(probe);
    return true;
  });
  flush_held();
  add_bit_probes();
  return with_turns;
}

template <typename T>
void TileProgram<T>::Builder::add_bit_probes() {
  std::sort(waiting_probes_.begin(), waiting_probes_.end(),
            [](const Probe& a, const Probe& b) { return a.x_mask < b.x_mask; });
  BitProbes lanes;
  std::vector<Probe> in_block;
  std::vector<Probe> beyond;
  for (const Probe& probe : waiting_probes_) {
    const int at = position(std::countr_zero(probe.x_mask));
    if (at >= lane_bits()) {
      (at < program_.block_.bits ? in_block : beyond).push_back(probe);
      continue;
    }
    if (lanes.count == 0) flush_signs();
    lanes.bits[lanes.count] = at;
    lanes.to[lanes.count++] = sum_of(probe);
  }
  waiting_probes_.clear();
  if (lanes.count > 0) {
    program_.steps_.push_back({StepKind::lane_probes, program_.bit_probes_.size()});
    program_.bit_probes_.push_back(lanes);
  }
  add_vector_probes(in_block);
  add_vector_probes(beyond);
}

template <typename T>
void TileProgram<T>::Builder::add_vector_probes(std::span<const Probe> probes) {
  while (!probes.empty()) {
    const std::size_t count = next_group(probes.size(), 3);
    BitProbes group;
    for (const Probe& probe : probes.first(count)) {
      group.bits[group.count] = position(std::countr_zero(probe.x_mask)) - lane_bits();
      group.to[group.count++] = sum_of(probe);
    }
    program_.steps_.push_back({StepKind::vector_probes, program_.bit_probes_.size()});
    program_.bit_probes_.push_back(group);
    probes = probes.subspan(count);
  }
}

// Probes without X and Y, which commute with phases.
template <typename T>
void TileProgram<T>::Builder::flush_diagonal_probes() {
  if (waiting_probes_.empty()) return;
  flush_held();
  DiagonalProbes sweep;
  const std::uint64_t row = (std::uint64_t{1} << program_.shape_.row_bits) - 1;
  std::vector<Probe> others;
  for (const Probe& probe : waiting_probes_) {
    const std::uint64_t used = inside(probe.z_mask | probe.control_mask);
    const bool in_row = (used & ~row) == 0;
    if (!in_row && (used & row) != 0) {
      others.push_back(probe);
      continue;
    }
    const int shift = in_row ? 0 : program_.shape_.row_bits;
    sweep.ones.push_back({outside(probe.control_mask, probe.control_values, probe.z_mask), sum_of(probe), in_row,
                          inside(probe.z_mask) >> shift, inside(probe.control_mask) >> shift,
                          inside(probe.control_values) >> shift});
  }
  waiting_probes_.clear();
  if (!sweep.ones.empty()) {
    sweep.columns = program_.diagonal_probes_.size() << program_.shape_.row_bits;
    program_.steps_.push_back({StepKind::diagonal_probes, program_.diagonal_probes_.size()});
    program_.diagonal_probes_.push_back(std::move(sweep));
  }
  for (const Probe& probe : others) add_pair_probe(probe, false);
}

// <bra| P |ket> is the sum over j of (-1)^parity(j & z) conj(bra[j]) ket[j ^ x], times (-i)^(number of Y).
template <typename T>
void TileProgram<T>::Builder::add_pair_probe(const Probe& probe, bool signs_matter) {
  flush_held();
  if (signs_matter) flush_signs();
  const int ys = std::popcount(probe.x_mask & probe.z_mask) % 4;
  const double sign = ys == 1 || ys == 2 ? -1 : 1;
  PairProbe pair{outside(probe.control_mask, probe.control_values, probe.z_mask), sum_of(probe, sign), {}, {}};
  pair.step = {.partner = in_vector(probe.x_mask),
               .lane_partner = in_lane(probe.x_mask),
               .sign = in_vector(probe.z_mask),
               .controls = in_vector(probe.control_mask),
               .control_values = in_vector(probe.control_values),
               .imaginary = ys % 2 == 0};
  for (unsigned lane = 0; lane < 1U << lane_bits(); ++lane) {
    const bool holds = (lane & in_lane(probe.control_mask)) == in_lane(probe.control_values);
    const bool odd = std::popcount(lane & in_lane(probe.z_mask)) % 2 != 0;
    pair.lanes.push_back(!holds ? 0.0 : odd ? -1.0 : 1.0);
  }
  program_.steps_.push_back({StepKind::pair_probe, program_.pair_probes_.size()});
  program_.pair_probes_.push_back(std::move(pair));
}

// --- Running ---

template <typename T>
void TileProgram<T>::add_row_sums(const DiagonalProbes& probes, std::uint64_t base, std::size_t first_row,
                                  std::size_t rows, Scratch& scratch) const {
  for (const auto& one : probes.ones) {
    if (one.in_row) continue;
    const double outside = factor_of(base, one.outside.sign, one.outside.controls, one.outside.control_values);
    if (outside == 0) continue;
    double sum = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      sum += factor_of(first_row + r, one.sign, one.controls, one.control_values) * scratch.rows[r];
    }
    scratch.sums[one.to.sum] += one.to.factor * outside * sum;
  }
}

template <typename T>
void TileProgram<T>::finish_diagonal_probes(std::uint64_t base, Scratch& scratch) const {
  const std::size_t size = std::size_t{1} << shape_.row_bits;
  for (const DiagonalProbes& probes : diagonal_probes_) {
    const T* const columns = scratch.columns.data() + probes.columns;
    for (const auto& one : probes.ones) {
      if (!one.in_row) continue;
      const double outside = factor_of(base, one.outside.sign, one.outside.controls, one.outside.control_values);
      if (outside == 0) continue;
      double sum = 0;
      for (std::size_t c = 0; c < size; ++c) {
        sum += factor_of(c, one.sign, one.controls, one.control_values) * static_cast<double>(columns[c]);
      }
      scratch.sums[one.to.sum] += one.to.factor * outside * sum;
    }
  }
}

template <typename T>
void TileProgram<T>::run_bit_probes(const Step& step, const TileShape& shape, T* ket, T* bra, Scratch& scratch) const {
  const bool turns = step.kind == StepKind::probed_butterflies || step.kind == StepKind::probed_lane_butterflies;
  const bool lanes = step.kind == StepKind::lane_probes || step.kind == StepKind::probed_lane_butterflies;
  const BitProbes& probes = bit_probes_[turns ? probed_butterflies_[step.index].probes : step.index];
  double out[4] = {};
  if (turns) {
    const Butterflies& b = butterflies_[probed_butterflies_[step.index].butterflies];
    if (lanes) {
      kernels_.probed_lane_butterflies(ket, bra, shape, b.tangents, b.signs, out);
    } else {
      kernels_.probed_butterflies(ket, bra, shape, b.bits, b.tangents, b.count, out);
    }
  } else if (lanes) {
    kernels_.probe_lanes(ket, bra, shape, out);
  } else {
    kernels_.probe_vectors(ket, bra, shape, probes.bits, probes.count, out);
  }
  for (int b = 0; b < probes.count; ++b) {
    scratch.sums[probes.to[b].sum] += probes.to[b].factor * out[lanes ? probes.bits[b] : b];
  }
}

template <typename T>
void TileProgram<T>::run_probe(const Step& step, std::uint64_t base, std::size_t first_row, const TileShape& shape,
                               T* ket, T* bra, Scratch& scratch) const {
  switch (step.kind) {
    case StepKind::diagonal_probes: {
      const DiagonalProbes& probes = diagonal_probes_[step.index];
      const std::size_t vectors = std::size_t{1} << (shape_.row_bits - shape_.lane_bits);
      for (std::size_t r = 0; r < shape.rows(); ++r) {
        const std::size_t at = r * shape_.row_stride();
        scratch.rows[r] = kernels_.probe_row(ket + at, bra + at, vectors, scratch.columns.data() + probes.columns);
      }
      return add_row_sums(probes, base, first_row, shape.rows(), scratch);
    }
    case StepKind::pair_probe: {
      const PairProbe& probe = pair_probes_[step.index];
      const double outside = factor_of(base, probe.outside.sign, probe.outside.controls, probe.outside.control_values);
      if (outside == 0) return;
      double out[1 << max_lane_bits] = {};
      kernels_.probe_pairs(ket, bra, shape, probe.step, out);
      double sum = 0;
      for (std::size_t l = 0; l < probe.lanes.size(); ++l) sum += probe.lanes[l] * out[l];
      scratch.sums[probe.to.sum] += probe.to.factor * outside * sum;
      return;
    }
    default:
      return run_bit_probes(step, shape, ket, bra, scratch);
  }
}

template class TileProgram<float>;
template class TileProgram<double>;

}  // namespace onehop::quantum
