// Matrices: one-bit gates as rotations and diagonals, two-bit gates by their Cartan decomposition, others as they are.
#include "quantum/engine/decomposer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace onehop::quantum {
namespace {

// Rotations with a larger tangent become pairs instead of butterflies, whose unscaled amplitudes would grow too much.
constexpr double steepest = 16;
constexpr std::uint64_t lane_mask = (std::uint64_t{1} << max_lane_bits) - 1;

bool is_diagonal(const std::vector<std::complex<double>>& m, std::size_t size) {
  for (std::size_t r = 0; r < size; ++r) {
    for (std::size_t c = 0; c < size; ++c) {
      if (r != c && m[r * size + c] != 0.0) return false;
    }
  }
  return true;
}

bool is_unitary(const Matrix2& m) {
  constexpr double tolerance = 1e-9;
  return std::abs(std::norm(m[0]) + std::norm(m[1]) - 1) < tolerance &&
         std::abs(std::norm(m[2]) + std::norm(m[3]) - 1) < tolerance &&
         std::abs(m[0] * std::conj(m[2]) + m[1] * std::conj(m[3])) < tolerance;
}

// Makes a bit with the given active value, a control of the matrix, the highest bit of its index.
void add_control(Dense& dense, int bit, bool value) {
  const std::size_t size = std::size_t{1} << dense.bits.size();
  std::vector<std::complex<double>> wider(4 * size * size);
  for (std::size_t r = 0; r < size; ++r) {
    for (std::size_t c = 0; c < size; ++c) {
      const std::complex<double> active = dense.matrix[r * size + c];
      const std::complex<double> inactive = r == c ? 1.0 : 0.0;
      wider[r * 2 * size + c] = value ? inactive : active;
      wider[(r + size) * 2 * size + c + size] = value ? active : inactive;
    }
  }
  dense.bits.push_back(bit);
  dense.matrix = std::move(wider);
}

}  // namespace

void Decomposer::add_matrix(const LocalOperation& op, const GateControls& controls, std::uint32_t index) {
  const std::size_t size = std::size_t{1} << op.bits.size();
  if (is_diagonal(op.values, size)) {
    std::vector<Number> values(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = op.values[i * size + i];
    return add_diagonal(op.bits, values, controls, index);
  }
  if (op.bits.size() == 1) {
    const Matrix2 m = {op.values[0], op.values[1], op.values[2], op.values[3]};
    if (is_unitary(m)) {
      if (controls.mask != 0) {
        flush_all(controls.mask | bit_of(op.bits[0]));
        return one_bit(op.bits[0], m, controls);
      }
      multiply_waiting(op.bits[0], m);
      waiting_gates_[static_cast<std::size_t>(op.bits[0])] += std::exchange(gates_, 0);
      return;
    }
  }
  if (op.bits.size() == 2 && controls.mask == 0 && fits_tile(bit_of(op.bits[0]) | bit_of(op.bits[1]))) {
    // A full decomposition costs a pair, two rotations and a share of two diagonals: with long vectors more than the
    // dense matrix (measured: docs/design/engine.md). It pays if some of these are absent.
    if (const auto& split = split_of(op.values)) return add_split(*split, op.bits);
    return add_two_bits(op, index);
  }
  add_dense(op, index);
}

const std::optional<KakDecomposition>& Decomposer::split_of(const std::vector<Number>& values) {
  for (const KnownMatrix& known : known_) {
    if (known.values == values) return known.split;
  }
  KnownMatrix& known = known_[next_known_++ % known_.size()];
  const auto zeros = std::count(values.begin(), values.end(), Number(0));
  known = {values, zeros >= 8 || !matrices_ ? kak_decomposition(values) : kak_one_angle(values)};
  return known.split;
}

void Decomposer::multiply_waiting(int bit, const Matrix2& m) {
  auto& waiting = waiting_[static_cast<std::size_t>(bit)];
  waiting = waiting ? product(m, *waiting) : m;
}

void Decomposer::add_two_bits(const LocalOperation& op, std::uint32_t index) {
  LocalOperation whole{.kind = LocalKind::matrix, .bits = op.bits, .values = op.values};
  for (std::size_t b = 0; b < 2; ++b) {
    auto& waiting = waiting_[static_cast<std::size_t>(op.bits[b])];
    if (!waiting) continue;
    const Matrix2 m = *waiting;
    waiting.reset();
    gates_ += std::exchange(waiting_gates_[static_cast<std::size_t>(op.bits[b])], 0);
    std::vector<Number> product(16);
    for (std::size_t r = 0; r < 4; ++r) {
      for (std::size_t c = 0; c < 4; ++c) {
        const std::size_t with_zero = c & ~(std::size_t{1} << b);
        const std::size_t value = c >> b & 1;
        product[r * 4 + c] = whole.values[r * 4 + with_zero] * m[value] +
                             whole.values[r * 4 + (with_zero | std::size_t{1} << b)] * m[2 + value];
      }
    }
    whole.values = std::move(product);
  }
  add_dense(whole, index);
}

void Decomposer::add_split(const KakDecomposition& split, const std::vector<int>& bits) {
  const std::uint64_t both = bit_of(bits[0]) | bit_of(bits[1]);
  const std::uint64_t top = std::bit_floor(both);
  for (std::size_t b = 0; b < 2; ++b) multiply_waiting(bits[b], split.before[b]);
  flush_all(both);
  phase_on(0, 0, {}, std::polar(1.0, split.zz));
  push_phase({Phase::When::odd, both, 0, std::polar(1.0, -2 * split.zz)});
  // exp(i (xx X X + yy Y Y)) mixes 00 with 11 by the angle xx - yy, and 01 with 10 by the angle xx + yy.
  const double angles[2] = {split.xx - split.yy, split.xx + split.yy};
  if (std::abs(std::sin(angles[0])) > negligible || std::abs(std::sin(angles[1])) > negligible) {
    PairOperation turn{both, both, 0, 0, {}};
    for (int p = 0; p < 2; ++p) {
      const double cosine = std::cos(angles[p]);
      const double sine = std::sin(angles[p]);
      const double matrix[4] = {cosine, sine, -sine, cosine};
      std::copy_n(matrix, 4, turn.matrix[p]);
    }
    phase_on(top, top, {}, Number(0, 1));
    push_pair(turn);
    phase_on(top, top, {}, Number(0, -1));
  } else {
    // Both sines vanish, so the cosines are 1 or -1.
    phase_on(0, 0, {}, std::cos(angles[0]));
    push_phase({Phase::When::odd, both, 0, std::cos(angles[1]) / std::cos(angles[0])});
  }
  for (std::size_t b = 0; b < 2; ++b) multiply_waiting(bits[b], split.after[b]);
}

void Decomposer::add_dense(const LocalOperation& op, std::uint32_t index) {
  // The kernel takes no controls on lane bits: they become further bits of the matrix.
  Dense dense{op.bits, op.control_mask & ~lane_mask, op.control_values & ~lane_mask, op.values};
  for (std::uint64_t low = op.control_mask & lane_mask; low != 0; low &= low - 1) {
    if (static_cast<int>(dense.bits.size()) >= max_dense_bits) break;
    add_control(dense, std::countr_zero(low), (op.control_values & low & -low) != 0);
  }
  std::uint64_t mixed = 0;
  for (const int bit : dense.bits) mixed |= bit_of(bit);
  // Every bit of the matrix needs a bit of the vector number in the tile that is not a control.
  const int room = low_bits_ + max_mixed_ - max_lane_bits - std::popcount(dense.control_mask);
  const bool complete = (op.control_mask & ~dense.control_mask & ~mixed) == 0;
  if (!complete || static_cast<int>(dense.bits.size()) > std::min(max_dense_bits, room) || !fits_tile(mixed)) {
    return by_operation(ItemKind::direct, mixed, op.control_mask, index);
  }
  flush_all(mixed | dense.control_mask);
  item(ItemKind::dense, mixed, dense.control_mask, items_.dense.size());
  items_.dense.push_back(std::move(dense));
}

void Decomposer::one_bit(int bit, const Matrix2& m, const GateControls& controls) {
  const double cosine = std::sqrt(std::norm(m[0]));
  const double sine = std::sqrt(std::norm(m[2]));
  const std::uint64_t mask = bit_of(bit);
  if (sine <= negligible) {
    phase_on(0, 0, controls, m[0]);
    phase_on(mask, mask, controls, m[3] / m[0]);
    return;
  }
  if (cosine <= negligible) {
    push_pair({mask, 0, controls.mask, controls.values, {{0, 1, 1, 0}, {}}});
    phase_on(0, 0, controls, m[1]);
    phase_on(mask, mask, controls, m[2] / m[1]);
    return;
  }
  const Number u0 = m[0] / cosine;
  const Number u1 = m[2] / sine;
  const Number w = cosine >= sine ? m[3] * std::conj(u1) / cosine : -m[1] * std::conj(u0) / sine;
  phase_on(mask, mask, controls, w);
  if (controls.mask == 0 && sine <= steepest * cosine) {
    push_butterfly(bit, sine / cosine);
    phase_on(0, 0, controls, u0);
  } else {
    push_pair({mask, 0, controls.mask, controls.values, {{cosine, -sine, sine, cosine}, {}}});
    phase_on(0, 0, controls, u0);
  }
  phase_on(mask, mask, controls, u1 * std::conj(u0));
}

}  // namespace onehop::quantum
