#include "quantum/engine/gate_decomposition.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "quantum/engine/kak.h"

namespace onehop::quantum {
namespace {

using Number = std::complex<double>;

// Rotations with a larger tangent become pairs instead of butterflies, whose unscaled amplitudes would grow too much.
constexpr double steepest = 16;
constexpr double negligible = 4e-16;
constexpr std::size_t max_factored_bits = 4;
constexpr int max_controlled_parity_bits = 6;
constexpr std::uint64_t lane_mask = (std::uint64_t{1} << max_lane_bits) - 1;

bool is_one(Number factor) { return std::norm(factor - 1.0) <= negligible * negligible; }

std::uint64_t bit_of(int bit) { return std::uint64_t{1} << bit; }

bool is_diagonal(const std::vector<Number>& m, std::size_t size) {
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

double cosine_of(double tangent) { return 1 / std::sqrt(1 + tangent * tangent); }

// The numbers of an operation that varies.
Number even_factor(const LocalOperation& op) { return std::polar(1.0, -op.angle / 2); }
Number sign_of_cosine(const LocalOperation& op) { return std::cos(op.angle / 2) < 0 ? -1.0 : 1.0; }

struct Controls {
  std::uint64_t mask = 0;
  std::uint64_t values = 0;
};

class Decomposer {
 public:
  Decomposer(int bits, int low_bits, int max_mixed, bool matrices, double steepest_varying)
      : matrices_(matrices),
        low_bits_(low_bits),
        low_mask_(bit_of(low_bits) - 1),
        max_mixed_(max_mixed),
        waiting_(static_cast<std::size_t>(bits)),
        waiting_gates_(waiting_.size()) {
    items_.steepest_varying = steepest_varying;
  }

  void add(const LocalOperation& op, std::uint32_t index) {
    ++gates_;
    const Controls controls{op.control_mask, op.control_values};
    switch (op.kind) {
      case LocalKind::matrix:
        return add_matrix(op, controls, index);
      case LocalKind::diagonal:
        if (op.varies) return add_varying_phase(op, controls, index);
        return add_diagonal(op.bits, op.values, controls, index);
      case LocalKind::swap: {
        const std::uint64_t both = bit_of(op.bits[0]) | bit_of(op.bits[1]);
        return pair({both, both, op.control_mask, op.control_values, {{1, 0, 0, 1}, {0, 1, 1, 0}}}, index);
      }
      case LocalKind::pauli_rotation:
        return op.varies ? add_varying_rotation(op, controls, index) : add_rotation(op, controls, index);
    }
  }

  Items finish() {
    for (std::size_t bit = 0; bit < waiting_.size(); ++bit) flush(static_cast<int>(bit));
    if (!items_.order.empty()) items_.order.back().gates += gates_;
    return std::move(items_);
  }

 private:
  // --- One-bit gates wait until another operation needs their bit, so that consecutive ones are multiplied ---

  void flush(std::uint64_t mask, int /*distinguishes it from flush(bit)*/) {
    for (; mask != 0; mask &= mask - 1) flush(std::countr_zero(mask));
  }

  void flush(int bit) {
    auto& waiting = waiting_[static_cast<std::size_t>(bit)];
    if (!waiting) return;
    const Matrix2 m = *waiting;
    waiting.reset();
    gates_ += std::exchange(waiting_gates_[static_cast<std::size_t>(bit)], 0);
    one_bit(bit, m, {}, 0);
  }

  void add_matrix(const LocalOperation& op, const Controls& controls, std::uint32_t index) {
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
          flush(controls.mask | bit_of(op.bits[0]), 0);
          return one_bit(op.bits[0], m, controls, index);
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

  // Remembers the last few matrices: a circuit tends to repeat a few of them, or none at all.
  const std::optional<KakDecomposition>& split_of(const std::vector<Number>& values) {
    for (const Known& known : known_) {
      if (known.values == values) return known.split;
    }
    Known& known = known_[next_known_++ % known_.size()];
    const auto zeros = std::count(values.begin(), values.end(), Number(0));
    known = {values, zeros >= 8 || !matrices_ ? kak_decomposition(values) : kak_one_angle(values)};
    return known.split;
  }

  void multiply_waiting(int bit, const Matrix2& m) {
    auto& waiting = waiting_[static_cast<std::size_t>(bit)];
    waiting = waiting ? product(m, *waiting) : m;
  }

  // Multiplies the gates that wait on the two bits into the matrix.
  void add_two_bits(const LocalOperation& op, std::uint32_t index) {
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

  void add_split(const KakDecomposition& split, const std::vector<int>& bits) {
    const std::uint64_t both = bit_of(bits[0]) | bit_of(bits[1]);
    const std::uint64_t top = std::bit_floor(both);
    for (std::size_t b = 0; b < 2; ++b) multiply_waiting(bits[b], split.before[b]);
    flush(both, 0);
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

  void add_dense(const LocalOperation& op, std::uint32_t index) {
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
    flush(mixed | dense.control_mask, 0);
    item(ItemKind::dense, mixed, dense.control_mask, items_.dense.size());
    items_.dense.push_back(std::move(dense));
  }

  static void add_control(Dense& dense, int bit, bool value) {
    const std::size_t size = std::size_t{1} << dense.bits.size();
    std::vector<Number> wider(4 * size * size);
    for (std::size_t r = 0; r < size; ++r) {
      for (std::size_t c = 0; c < size; ++c) {
        const Number active = dense.matrix[r * size + c];
        const Number inactive = r == c ? 1.0 : 0.0;
        wider[r * 2 * size + c] = value ? inactive : active;
        wider[(r + size) * 2 * size + c + size] = value ? active : inactive;
      }
    }
    dense.bits.push_back(bit);
    dense.matrix = std::move(wider);
  }

  [[nodiscard]] bool fits_tile(std::uint64_t mixed) const { return std::popcount(mixed & ~low_mask_) <= max_mixed_; }

  // Decomposes m into diag(u0, u1) R diag(1, w), with the rotation R of cosine |m[0]| and sine |m[2]|.
  void one_bit(int bit, const Matrix2& m, const Controls& controls, std::uint32_t /*index*/) {
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

  // --- Diagonals ---

  void add_diagonal(const std::vector<int>& bits, const std::vector<Number>& values, const Controls& controls,
                    std::uint32_t index) {
    if (bits.size() == 1 && controls.mask == 0 && waiting_[static_cast<std::size_t>(bits[0])]) {
      auto& waiting = waiting_[static_cast<std::size_t>(bits[0])];
      if (std::abs(std::abs(values[0]) - 1) < 1e-9 && std::abs(std::abs(values[1]) - 1) < 1e-9) {
        waiting = product({values[0], 0, 0, values[1]}, *waiting);
        waiting_gates_[static_cast<std::size_t>(bits[0])] += std::exchange(gates_, 0);
        return;
      }
    }
    std::uint64_t mask = controls.mask;
    for (const int bit : bits) mask |= bit_of(bit);
    flush(mask, 0);
    bool factors = bits.size() <= max_factored_bits;
    for (const Number& value : values) factors = factors && std::abs(value) > 1e-3;
    if (!factors && !bits.empty()) {
      by_operation(ItemKind::table, 0, mask, index);
      return;
    }
    if (bits.size() == 2 && controls.mask == 0 && values[0] == values[3] && values[1] == values[2]) {
      phase_on(0, 0, controls, values[0]);
      push_phase({Phase::When::odd, mask, 0, values[1] / values[0]});
      return;
    }
    factor_into_phases(bits, values, controls);
  }

  // Writes values[v] as a product of factors, one for each subset of the bits that are 1 in v (a Moebius transform).
  void factor_into_phases(const std::vector<int>& bits, std::vector<Number> values, const Controls& controls) {
    for (std::size_t b = 0; b < bits.size(); ++b) {
      for (std::size_t v = 0; v < values.size(); ++v) {
        if ((v >> b & 1) != 0) values[v] /= values[v ^ (std::size_t{1} << b)];
      }
    }
    for (std::size_t v = 0; v < values.size(); ++v) {
      std::uint64_t mask = 0;
      for (std::size_t b = 0; b < bits.size(); ++b) mask |= (v >> b & 1) << bits[b];
      phase_on(mask, mask, controls, values[v]);
    }
  }

  void phase_on(std::uint64_t mask, std::uint64_t want, const Controls& controls, Number factor) {
    push_phase({Phase::When::all_of, mask | controls.mask, want | controls.values, factor});
  }

  void push_phase(const Phase& phase) {
    if (is_one(phase.factor)) return;
    item(ItemKind::phase, 0, phase.mask, items_.phases.size());
    items_.phases.push_back(phase);
  }

  // --- Rotations about Pauli strings ---

  void add_rotation(const LocalOperation& op, const Controls& controls, std::uint32_t index) {
    if (op.x_mask == 0) return add_parity(op, controls, index);
    if (!fits_tile(op.x_mask)) {
      return by_operation(ItemKind::direct, op.x_mask, op.z_mask | op.control_mask, index);
    }
    const double cosine = std::cos(op.angle / 2);
    const double sine = std::sin(op.angle / 2);
    const int top = static_cast<int>(std::bit_width(op.x_mask)) - 1;
    if (op.x_mask == bit_of(top) && (op.z_mask & ~op.x_mask) == 0 && controls.mask == 0) {
      const bool is_y = op.z_mask != 0;
      LocalOperation gate{.kind = LocalKind::matrix, .bits = {top}};
      gate.values = {cosine, is_y ? Number(-sine) : Number(0, -sine), is_y ? Number(sine) : Number(0, -sine), cosine};
      return add_matrix(gate, controls, index);
    }
    // P|i> = w(i)|i ^ x> with w(i) = i^ys (-1)^parity(i & z), so amplitude i contributes -i sine w(i) to its partner.
    // This is real for an odd number of Y. Otherwise an S before and its inverse after, on the top bit of x, make it
    // real.
    const int ys = std::popcount(op.x_mask & op.z_mask);
    const bool odd = ys % 2 != 0;
    const double sign = odd ? (ys % 4 == 1 ? 1 : -1) : (ys % 4 == 0 ? 1 : -1);
    PairOperation rotation{op.x_mask, op.z_mask, controls.mask, controls.values, {}};
    for (int p = 0; p < 2; ++p) {
      const double from_first = sign * (p == 0 ? 1 : -1);         // of i, whose parity is p
      const double from_second = odd ? -from_first : from_first;  // of its partner
      auto& m = rotation.matrix[p];
      m[0] = m[3] = cosine;
      m[1] = odd ? sine * from_second : -sine * from_second;
      m[2] = sine * from_first;
    }
    flush(op.x_mask | op.z_mask | controls.mask, 0);
    if (!odd) phase_on(bit_of(top), bit_of(top), {}, Number(0, 1));
    pair(rotation, index);
    if (!odd) phase_on(bit_of(top), bit_of(top), {}, Number(0, -1));
  }

  void add_parity(const LocalOperation& op, const Controls& controls, std::uint32_t index) {
    const Number even = std::polar(1.0, -op.angle / 2);
    flush(op.z_mask | controls.mask, 0);
    if (controls.mask == 0 || op.z_mask == 0) {
      phase_on(0, 0, controls, even);
      if (op.z_mask != 0) push_phase({Phase::When::odd, op.z_mask, 0, std::conj(even) / even});
      return;
    }
    if (std::popcount(op.z_mask) > max_controlled_parity_bits) {
      return by_operation(ItemKind::direct, op.z_mask, controls.mask, index);
    }
    std::vector<int> bits;
    for (std::uint64_t z = op.z_mask; z != 0; z &= z - 1) bits.push_back(std::countr_zero(z));
    std::vector<Number> values(std::size_t{1} << bits.size());
    for (std::size_t v = 0; v < values.size(); ++v) values[v] = std::popcount(v) % 2 == 0 ? even : std::conj(even);
    factor_into_phases(bits, values, controls);
  }

  // --- Operations whose angle varies: the same items for every angle ---

  void add_probe(const LocalOperation& op, std::uint64_t x_mask, std::uint64_t z_mask) {
    if (op.probe < 0) return;
    const double factor = op.kind == LocalKind::pauli_rotation ? op.weight : -2 * op.weight;
    item(ItemKind::probe, x_mask, (z_mask | op.control_mask) & ~x_mask, items_.probes.size());
    items_.probes.push_back({x_mask, z_mask, op.control_mask, op.control_values, factor, op.probe});
  }

  void add_varying_phase(const LocalOperation& op, const Controls& controls, std::uint32_t index) {
    flush(controls.mask, 0);
    add_probe(op, 0, 0);
    varying(VaryingItems::Form::phase, index);
    push_varying_phase({Phase::When::all_of, controls.mask, controls.values, op.values.front()});
  }

  void add_varying_rotation(const LocalOperation& op, const Controls& controls, std::uint32_t index) {
    flush(op.x_mask | op.z_mask | controls.mask, 0);
    if (op.x_mask == 0 && controls.mask == 0) {
      add_probe(op, 0, op.z_mask);
      varying(VaryingItems::Form::parity, index);
      const Number even = even_factor(op);
      push_varying_phase({Phase::When::all_of, 0, 0, even});
      push_varying_phase({Phase::When::odd, op.z_mask, 0, std::conj(even) / even});
      return;
    }
    const bool one_bit = std::has_single_bit(op.x_mask) && (op.z_mask & ~op.x_mask) == 0 && controls.mask == 0;
    const double tangent = std::tan(op.angle / 2);
    if (!one_bit || std::abs(tangent) > items_.steepest_varying) {
      items_.refreshable = false;
      if (fits_tile(op.x_mask)) add_probe(op, op.x_mask, op.z_mask);
      return add_rotation(op, controls, index);
    }
    // A rotation about X is one about Y between S and its inverse.
    const int bit = std::countr_zero(op.x_mask);
    const bool is_y = op.z_mask != 0;
    if (!is_y) push_any_phase({Phase::When::all_of, op.x_mask, op.x_mask, Number(0, 1)});
    add_probe(op, op.x_mask, op.x_mask);
    varying(VaryingItems::Form::turn, index);
    push_butterfly(bit, tangent);
    push_varying_phase({Phase::When::all_of, 0, 0, sign_of_cosine(op)});
    if (!is_y) push_any_phase({Phase::When::all_of, op.x_mask, op.x_mask, Number(0, -1)});
  }

  // Notes where the next items of an operation that varies are.
  void varying(VaryingItems::Form form, std::uint32_t index) {
    items_.varying.push_back({form, index, static_cast<std::uint32_t>(items_.phases.size()),
                              static_cast<std::uint32_t>(items_.butterflies.size())});
  }

  void push_any_phase(const Phase& phase) {
    item(ItemKind::phase, 0, phase.mask, items_.phases.size());
    items_.phases.push_back(phase);
  }

  void push_varying_phase(Phase phase) {
    phase.source = static_cast<int>(items_.phases.size());
    push_any_phase(phase);
  }

  void push_butterfly(int bit, double tangent) {
    item(ItemKind::butterfly, bit_of(bit), 0, items_.butterflies.size());
    items_.butterflies.push_back({bit, tangent, cosine_of(tangent), static_cast<int>(items_.butterflies.size())});
  }

  void pair(const PairOperation& operation, std::uint32_t index) {
    if (!fits_tile(operation.x_mask)) {
      return by_operation(ItemKind::direct, operation.x_mask, operation.z_mask | operation.control_mask, index);
    }
    flush(operation.x_mask | operation.z_mask | operation.control_mask, 0);
    push_pair(operation);
  }

  // --- Output ---

  void push_pair(const PairOperation& operation) {
    flush(operation.control_mask | operation.x_mask | operation.z_mask, 0);
    item(ItemKind::pair, operation.x_mask, (operation.z_mask | operation.control_mask) & ~operation.x_mask,
         items_.pairs.size());
    items_.pairs.push_back(operation);
  }

  void by_operation(ItemKind kind, std::uint64_t mixed, std::uint64_t watched, std::uint32_t index) {
    flush(mixed | watched, 0);
    item(kind, mixed, watched & ~mixed, index);
  }

  void item(ItemKind kind, std::uint64_t mixed, std::uint64_t watched, std::size_t index) {
    items_.order.push_back({kind, mixed, watched, static_cast<std::uint32_t>(index), std::exchange(gates_, 0)});
  }

  struct Known {
    std::vector<Number> values;
    std::optional<KakDecomposition> split;
  };

  bool matrices_;
  std::array<Known, 4> known_;
  std::size_t next_known_ = 0;
  int low_bits_;
  std::uint64_t low_mask_;
  int max_mixed_;
  std::vector<std::optional<Matrix2>> waiting_;
  std::vector<std::uint32_t> waiting_gates_;  // the number of gates multiplied into each of them
  std::uint32_t gates_ = 0;                   // the number of gates that count with the next item
  Items items_;
};

}  // namespace

Items decompose_gates(std::span<const LocalOperation> operations, int bits, int low_bits, int max_mixed, bool matrices,
                      double steepest_varying) {
  Decomposer decomposer(bits, low_bits, max_mixed, matrices, steepest_varying);
  for (std::size_t i = 0; i < operations.size(); ++i) decomposer.add(operations[i], static_cast<std::uint32_t>(i));
  return decomposer.finish();
}

bool refresh(Items& items, std::span<const LocalOperation> operations) {
  if (!items.refreshable) return false;
  for (const VaryingItems& one : items.varying) {
    const LocalOperation& op = operations[one.operation];
    Phase* const phases = items.phases.data() + one.phase;
    switch (one.form) {
      case VaryingItems::Form::phase:
        phases[0].factor = op.values.front();
        break;
      case VaryingItems::Form::parity: {
        const Number even = even_factor(op);
        phases[0].factor = even;
        phases[1].factor = std::conj(even) / even;
        break;
      }
      case VaryingItems::Form::turn: {
        Butterfly& butterfly = items.butterflies[one.butterfly];
        butterfly.tangent = std::tan(op.angle / 2);
        if (std::abs(butterfly.tangent) > items.steepest_varying) return false;
        butterfly.cosine = cosine_of(butterfly.tangent);
        phases[0].factor = sign_of_cosine(op);
        break;
      }
    }
  }
  return true;
}

}  // namespace onehop::quantum
