// Builds the steps of a pass that apply pairs, matrices and tables.
#include <algorithm>
#include <bit>

#include "quantum/engine/engine_tile_builder.h"

namespace onehop::quantum {

template <typename T>
void TileProgram<T>::Builder::add_pair(const PairOperation& op) {
  if (held_ && ((op.x_mask | op.z_mask | op.control_mask) & held_->x_mask) != 0) flush_held();
  if (!can_merge(op)) {
    add_one_pair(op);
  } else if (held_) {
    TwoPairsStep<T> both;
    for (int k = 0; k < 2; ++k) {
      const PairOperation& each = k == 0 ? *held_ : op;
      const std::size_t bits = in_vector(each.x_mask);
      both.bits[2 * k] = std::countr_zero(bits);
      both.bits[2 * k + 1] = static_cast<int>(std::bit_width(bits)) - 1;
      for (int p = 0; p < 2; ++p) {
        for (int i = 0; i < 4; ++i) both.matrix[k][p][i] = static_cast<T>(each.matrix[p][i]);
      }
    }
    held_.reset();
    step(StepKind::two_pairs, program_.two_pairs_.size());
    program_.two_pairs_.push_back(both);
  } else {
    held_ = op;
  }
}

template <typename T>
void TileProgram<T>::Builder::flush_held() {
  if (!held_) return;
  const PairOperation op = *held_;
  held_.reset();
  add_one_pair(op);
}

template <typename T>
void TileProgram<T>::Builder::add_one_pair(const PairOperation& op) {
  Pair pair{outside(op.control_mask, op.control_values, op.z_mask), {}};
  PairStep<T>& s = pair.step;
  s.partner = in_vector(op.x_mask);
  s.top = s.partner == 0 ? 0 : std::bit_floor(s.partner);
  s.lane_partner = in_lane(op.x_mask);
  s.sign = in_vector(op.z_mask);
  s.controls = in_vector(op.control_mask);
  s.control_values = in_vector(op.control_values);
  fill_coefficients(s, op);
  flush_signs();
  // Does not call step(), which would flush the held pair: that one shares no bit with this one and may wait longer.
  program_.steps_.push_back({StepKind::pair, program_.pairs_.size()});
  program_.pairs_.push_back(std::move(pair));
}

template <typename T>
void TileProgram<T>::Builder::fill_coefficients(PairStep<T>& s, const PairOperation& op) const {
  const unsigned lanes = 1U << lane_bits();
  const unsigned sign = in_lane(op.z_mask);
  const unsigned controls = in_lane(op.control_mask);
  const unsigned control_values = in_lane(op.control_values);
  const unsigned lane_top = std::bit_floor(s.lane_partner);
  s.coefficients.assign(std::size_t{8} * lanes, T(0));
  for (unsigned p = 0; p < 2; ++p) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
      const auto at = [&](unsigned which) -> T& { return s.coefficients[(p * 4 + which) * lanes + lane]; };
      if ((lane & controls) != control_values) {
        at(0) = at(2) = 1;
        continue;
      }
      const double* as_first = op.matrix[(p + static_cast<unsigned>(std::popcount(lane & sign))) % 2];
      const double* as_second =
          op.matrix[(p + static_cast<unsigned>(std::popcount((lane ^ s.lane_partner) & sign))) % 2];
      const bool second = s.partner == 0 && (lane & lane_top) != 0;
      at(0) = static_cast<T>(second ? as_second[3] : as_first[0]);
      at(1) = static_cast<T>(second ? as_second[2] : as_first[1]);
      at(2) = static_cast<T>(as_second[3]);
      at(3) = static_cast<T>(as_second[2]);
    }
  }
}

template <typename T>
void TileProgram<T>::Builder::add_lane_matrix(const Dense& dense) {
  LaneMatrix matrix{outside(dense.control_mask, dense.control_values, 0), {}};
  LaneMatrixStep<T>& s = matrix.step;
  int lane[2];  // for each bit of the matrix: its lane bit, or -1
  for (std::size_t b = 0; b < 2; ++b) {
    const int at = position(dense.bits[b]);
    lane[b] = at < lane_bits() ? at : -1;
    if (at < lane_bits()) s.lane_mask |= 1U << at;
    if (at >= lane_bits()) s.bit = at - lane_bits();
  }
  const unsigned lanes = 1U << lane_bits();
  const unsigned vectors = s.bit < 0 ? 1 : 2;
  const unsigned exchanges = s.bit < 0 ? 4 : 2;  // combinations of exchanged lane bits; bit k: the k-th lowest one
  const auto value = [&](unsigned vector, unsigned l) {
    unsigned v = 0;
    for (unsigned b = 0; b < 2; ++b) v |= (lane[b] < 0 ? vector : l >> lane[b] & 1U) << b;
    return v;
  };
  for (unsigned to = 0; to < vectors; ++to) {
    for (unsigned from = 0; from < vectors; ++from) {
      for (unsigned x = 0; x < exchanges; ++x) {
        const auto exchanged = static_cast<unsigned>(deposit_bits(x, s.lane_mask));
        for (const bool imaginary : {false, true}) {
          for (unsigned l = 0; l < lanes; ++l) {
            const auto entry = dense.matrix[value(to, l) * 4 + value(from, l ^ exchanged)];
            s.coefficients.push_back(static_cast<T>(imaginary ? entry.imag() : entry.real()));
          }
        }
      }
    }
  }
  step(StepKind::lane_matrix, program_.lane_matrices_.size());
  program_.lane_matrices_.push_back(std::move(matrix));
}

template <typename T>
void TileProgram<T>::Builder::add_dense(const Dense& dense) {
  const bool in_vector_too = std::any_of(dense.bits.begin(), dense.bits.end(), [&](int b) { return b < lane_bits(); });
  if (dense.bits.size() == 2 && in_vector_too && (dense.control_mask & program_.tile_) == 0) {
    return add_lane_matrix(dense);
  }
  DenseMatrix matrix{outside(dense.control_mask, dense.control_values, 0), {}};
  matrix.step.controls = in_vector(dense.control_mask);
  matrix.step.control_values = in_vector(dense.control_values);
  matrix.step.matrix.assign(dense.matrix.begin(), dense.matrix.end());
  std::uint64_t used = dense.control_mask & program_.tile_;
  for (const int bit : dense.bits) used |= std::uint64_t{1} << bit;
  std::vector<std::uint64_t> exchanged;
  std::uint64_t free = program_.tile_ & ~used & ~((std::uint64_t{1} << lane_bits()) - 1);
  for (int bit : dense.bits) {
    if (bit < lane_bits()) {
      const std::uint64_t other = free & -free;
      free ^= other;
      exchanged.push_back(other | std::uint64_t{1} << bit);
      bit = std::countr_zero(other);
    }
    matrix.step.bits.push_back(position(bit) - lane_bits());
  }
  const auto exchange = [&] {
    for (const std::uint64_t both : exchanged) add_pair({both, both, 0, 0, {{1, 0, 0, 1}, {0, 1, 1, 0}}});
  };
  exchange();
  step(StepKind::dense, program_.dense_.size());
  program_.dense_.push_back(std::move(matrix));
  exchange();
}

template <typename T>
std::vector<Item> TileProgram<T>::Builder::join_butterflies(std::vector<Item> items) {
  if (!items_.varying.empty() || !signs_.empty()) return items;
  std::vector<Item> rest = take(take(items, is_phase), is_butterfly);
  const int bits[2] = {layer_.front().bit, layer_.back().bit};
  const std::uint64_t both = std::uint64_t{1} << bits[0] | std::uint64_t{1} << bits[1];
  const auto later = std::stable_partition(phases_.begin(), phases_.end(),
                                           [&](const Phase& phase) { return (phase.mask & ~both) == 0; });
  const bool in_order =
      std::all_of(later, phases_.end(), [&](const Phase& phase) { return (phase.mask >> bits[1] & 1U) == 0; });
  if (layer_.size() != 2 || bits[0] == bits[1] || !in_order || in_lane(both) != 0) {
    layer_.resize(1);
    phases_.clear();
    return items;
  }
  DenseMatrix joined;
  for (int b = 0; b < 2; ++b) {
    joined.step.bits.push_back(position(bits[b]) - lane_bits());
    joined.step.tangents[b] = static_cast<T>(layer_[static_cast<std::size_t>(b)].tangent);
  }
  for (std::uint64_t v = 0; v < 4; ++v) {
    std::complex<double> factor = layer_[0].cosine * layer_[1].cosine;
    const std::uint64_t index = (v & 1U) << bits[0] | v >> 1U << bits[1];
    std::for_each(phases_.begin(), later, [&](const Phase& phase) {
      const std::uint64_t i = index & phase.mask;
      if (phase.when == Phase::When::odd ? std::popcount(i) % 2 != 0 : i == phase.want) factor *= phase.factor;
    });
    joined.step.matrix.emplace_back(factor);
  }
  phases_.erase(phases_.begin(), later);
  layer_.clear();
  step(StepKind::dense, program_.dense_.size());
  program_.dense_.push_back(std::move(joined));
  rest = take(rest, is_phase);
  flush_phases();
  return rest;
}

template <typename T>
void TileProgram<T>::Builder::add_table(const LocalOperation& op) {
  Table table{&op, {}};
  const std::size_t size = std::size_t{1} << op.bits.size();
  for (std::size_t i = 0; i < size; ++i) {
    table.values.emplace_back(op.kind == LocalKind::matrix ? op.values[i * size + i] : op.values[i]);
  }
  step(StepKind::table, program_.tables_.size());
  program_.tables_.push_back(std::move(table));
}

template class TileProgram<float>::Builder;
template class TileProgram<double>::Builder;

}  // namespace onehop::quantum
