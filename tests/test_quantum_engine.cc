#include "onehop/quantum/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "engine_run.h"
#include "engine_split.h"
#include "onehop/error.h"

namespace onehop::quantum {
namespace {

using Complex = std::complex<double>;
using State = std::vector<Complex>;
using Random = std::mt19937_64;

// The definition, amplitude by amplitude: the numbers that each basis state |j> sends to the others.
State by_definition(const State& in, const LocalOperation& op) {
  State out(in.size());
  for (std::uint64_t j = 0; j < in.size(); ++j) {
    if ((j & op.control_mask) != op.control_values) {
      out[j] += in[j];
      continue;
    }
    std::uint64_t value = 0;
    for (std::size_t b = 0; b < op.bits.size(); ++b) value |= (j >> op.bits[b] & 1) << b;
    const auto with_value = [&](std::uint64_t v) {
      std::uint64_t i = j;
      for (std::size_t b = 0; b < op.bits.size(); ++b) {
        i &= ~(std::uint64_t{1} << op.bits[b]);
        i |= (v >> b & 1) << op.bits[b];
      }
      return i;
    };
    const std::uint64_t size = std::uint64_t{1} << op.bits.size();
    switch (op.kind) {
      case LocalKind::matrix:
        for (std::uint64_t r = 0; r < size; ++r) out[with_value(r)] += op.values[r * size + value] * in[j];
        break;
      case LocalKind::diagonal:
        out[j] += op.values[value] * in[j];
        break;
      case LocalKind::swap:
        out[with_value((value >> 1) | (value & 1) << 1)] += in[j];
        break;
      case LocalKind::pauli_rotation: {
        Complex factor = 1;  // P|j> = factor |j ^ x_mask>, one Pauli matrix after the other
        for (int bit = 0; bit < 64; ++bit) {
          const bool x = (op.x_mask >> bit & 1) != 0;
          const bool z = (op.z_mask >> bit & 1) != 0;
          const bool one = (j >> bit & 1) != 0;
          if (x && z) factor *= one ? Complex(0, -1) : Complex(0, 1);
          if (!x && z && one) factor = -factor;
        }
        out[j] += std::cos(op.angle / 2) * in[j];
        out[j ^ op.x_mask] += Complex(0, -std::sin(op.angle / 2)) * factor * in[j];
        break;
      }
    }
  }
  return out;
}

int number(Random& random, int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }
double real(Random& random) { return std::normal_distribution<double>()(random); }
Complex complex(Random& random) { return {real(random), real(random)}; }

std::vector<Complex> random_unitary(Random& random, std::size_t size) {
  std::vector<Complex> rows(size * size);
  for (auto& x : rows) x = complex(random);
  for (std::size_t r = 0; r < size; ++r) {
    for (std::size_t before = 0; before <= r; ++before) {
      Complex dot = 0;
      double norm = 0;
      for (std::size_t c = 0; c < size; ++c) {
        dot += std::conj(rows[before * size + c]) * rows[r * size + c];
        norm += std::norm(rows[r * size + c]);
      }
      for (std::size_t c = 0; c < size; ++c) {
        rows[r * size + c] =
            before < r ? rows[r * size + c] - dot * rows[before * size + c] : rows[r * size + c] / std::sqrt(norm);
      }
    }
  }
  return rows;
}

State random_state(Random& random, int bits) {
  State state(std::size_t{1} << bits);
  double norm = 0;
  for (auto& a : state) norm += std::norm(a = complex(random));
  for (auto& a : state) a /= std::sqrt(norm);
  return state;
}

std::uint64_t mask_of(const std::vector<int>& bits) {
  std::uint64_t mask = 0;
  for (const int bit : bits) mask |= std::uint64_t{1} << bit;
  return mask;
}

const double quarter = std::acos(-1.0) / 2;

// The gates that circuits are made of, with the special values that a fast path may single out.
std::vector<Complex> one_bit_gate(Random& random) {
  const double h = std::sqrt(0.5);
  const Complex i(0, 1);
  switch (number(random, 0, 9)) {
    case 0:
      return {h, h, h, -h};
    case 1:
      return {0, 1, 1, 0};
    case 2:
      return {0, -i, i, 0};
    case 3:
      return {1, 0, 0, std::polar(1.0, real(random))};
    case 4:
      return {1, 0, 0, i};
    case 5:
      return {0.5 + 0.5 * i, 0.5 - 0.5 * i, 0.5 - 0.5 * i, 0.5 + 0.5 * i};
    case 6:
      return {1, 0, 0, 1};
    case 7: {  // a rotation by nearly pi
      const double angle = quarter - 1e-5;
      return {std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle)};
    }
    default:
      return random_unitary(random, 2);
  }
}

LocalOperation random_operation(Random& random, int bits, int most_bits = 5) {
  std::vector<int> order(static_cast<std::size_t>(bits));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  const auto take = [&](int most) {
    const int count = std::min(most, static_cast<int>(order.size()));
    std::vector<int> taken(order.end() - count, order.end());
    order.resize(order.size() - static_cast<std::size_t>(count));
    return taken;
  };
  LocalOperation op;
  switch (number(random, 0, 7)) {
    case 0:
    case 1:
    case 2:
      op.kind = LocalKind::matrix;
      op.bits = take(1);
      op.values = one_bit_gate(random);
      break;
    case 3:
      op.kind = LocalKind::matrix;
      op.bits = take(number(random, 1, std::max(1, most_bits)));
      op.values = random_unitary(random, std::size_t{1} << op.bits.size());
      if (number(random, 0, 3) == 0) {  // of a channel: not unitary
        for (auto& x : op.values) x = number(random, 0, 2) == 0 ? Complex(0) : complex(random) * 0.5;
      }
      break;
    case 4:
    case 5:
      op.kind = LocalKind::diagonal;
      op.bits = take(number(random, 0, number(random, 0, 4) == 0 ? 8 : 3));
      for (std::size_t j = 0; j < std::size_t{1} << op.bits.size(); ++j) {
        op.values.push_back(std::polar(1.0, 3 * real(random)));
      }
      if (number(random, 0, 3) == 0) op.values.back() = number(random, 0, 1);
      if (number(random, 0, 3) == 0) std::fill(op.values.begin(), op.values.end() - 1, Complex(1));
      break;
    case 6:
      op.kind = bits < 2 ? LocalKind::diagonal : LocalKind::swap;
      op.bits = take(2);
      if (bits < 2) op.values = {1, -1};
      break;
    default:
      op.kind = LocalKind::pauli_rotation;
      op.angle = number(random, 0, 3) == 0 ? quarter * number(random, -4, 4) : real(random);
      for (const int bit : take(number(random, 1, number(random, 0, 1) == 0 ? 2 : bits))) {
        const int which = number(random, 1, 3);
        if ((which & 1) != 0) op.x_mask |= std::uint64_t{1} << bit;
        if ((which & 2) != 0) op.z_mask |= std::uint64_t{1} << bit;
      }
      break;
  }
  if (number(random, 0, 2) == 0) {
    op.control_mask = mask_of(take(number(random, 1, 3)));
    op.control_values = op.control_mask & (number(random, 0, 1) == 0 ? ~std::uint64_t{0} : random());
  }
  return op;
}

template <typename T>
std::vector<std::complex<T>> as(const State& state) {
  return {state.begin(), state.end()};
}

template <typename T>
double distance(const State& expected, const std::vector<std::complex<T>>& found) {
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) worst = std::max(worst, std::abs(expected[i] - Complex(found[i])));
  return worst;
}

double largest(const State& state) {
  double most = 1;
  for (const Complex& a : state) most = std::max(most, std::abs(a));
  return most;
}

void expect_same(int bits, const std::vector<LocalOperation>& operations, const State& start, const std::string& what) {
  State expected = start;
  double most = 1;
  for (const auto& op : operations) {
    expected = by_definition(expected, op);
    most = std::max(most, largest(expected));
  }
  const double each = 1 + static_cast<double>(operations.size());
  for (const int threads : {1, 2, 3}) {
    auto found = as<double>(start);
    const auto counters = apply<double>(found, operations, {.threads = threads});
    ASSERT_LT(distance(expected, found), 1e-14 * each * most) << what << ", double, " << threads << " threads";
    ASSERT_EQ(counters.passes, count_passes(bits, operations, 16));
    ASSERT_EQ(counters.passes, static_cast<double>(summarize_passes(bits, operations, 16).size()));
    auto single = as<float>(start);
    apply<float>(single, operations, {.threads = threads});
    ASSERT_LT(distance(expected, single), 1e-6 * each * most) << what << ", float, " << threads << " threads";
  }
}

TEST(QuantumEngine, OneOperationOfEveryKind) {
  Random random(1);
  for (int bits = 1; bits <= 12; ++bits) {
    for (int round = 0; round < 30; ++round) {
      const LocalOperation op = random_operation(random, bits);
      expect_same(bits, {op}, random_state(random, bits),
                  std::to_string(bits) + " bits, kind " + std::to_string(static_cast<int>(op.kind)));
    }
  }
}

TEST(QuantumEngine, Circuits) {
  Random random(2);
  for (int bits = 1; bits <= 12; ++bits) {
    for (int round = 0; round < 4; ++round) {
      std::vector<LocalOperation> operations;
      for (int i = 0; i < 40; ++i) operations.push_back(random_operation(random, bits, 3));
      expect_same(bits, operations, random_state(random, bits),
                  std::to_string(bits) + " bits, round " + std::to_string(round));
    }
  }
}

// Tiles small enough that many make up a state that can be checked by definition; every kind of vectors that this processor has.
TEST(QuantumEngine, Tiles) {
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    const int bits = number(random, 10, 12);
    std::vector<LocalOperation> operations;
    const int count = number(random, 1, 60);
    for (int i = 0; i < count; ++i) operations.push_back(random_operation(random, bits, 3));
    if (round % 3 == 0) {  // gates side by side, of which some go together
      std::vector<int> order(static_cast<std::size_t>(bits));
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      for (std::size_t k = 0; k + 1 < order.size(); k += 2) {
        operations.push_back(
            {.kind = LocalKind::matrix, .bits = {order[k], order[k + 1]}, .values = random_unitary(random, 4)});
        if (k % 4 == 0) operations.push_back({.kind = LocalKind::swap, .bits = {order[k], order[k + 1]}});
      }
    }
    const State start = random_state(random, bits);
    State expected = start;
    double most = 1;
    for (const auto& op : operations) {
      expected = by_definition(expected, op);
      most = std::max(most, largest(expected));
    }
    const TileSizes sizes{number(random, 9, bits), number(random, 4, 6)};
    const PassList list = make_pass_list(bits, operations, sizes);
    const double each = 1 + static_cast<double>(operations.size());
    for (const std::string& simd : simd_names()) {
      const std::string what = simd + ", round " + std::to_string(round);
      auto found = as<double>(start);
      run_passes<double>(found, operations, list, kernels_named<double>(simd), number(random, 1, 3));
      ASSERT_LT(distance(expected, found), 1e-14 * each * most) << what;
      auto single = as<float>(start);
      run_passes<float>(single, operations, list, kernels_named<float>(simd), number(random, 1, 3));
      ASSERT_LT(distance(expected, single), 1e-6 * each * most) << what;
    }
  }
}

// The parts of a two-bit gate, applied one after the other by definition, are the gate.
TEST(QuantumEngine, TwoBitGatesTakenApart) {
  Random random(4);
  const double h = std::sqrt(0.5);
  const Complex i(0, 1);
  std::vector<std::vector<Complex>> gates = {{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1},
                                             {1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1},
                                             {1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0},
                                             {1, 0, 0, 0, 0, 0, i, 0, 0, i, 0, 0, 0, 0, 0, 1},
                                             {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, -1},
                                             {h, 0, 0, h * i, 0, h, h * i, 0, 0, h * i, h, 0, h * i, 0, 0, h},
                                             {1, 0, 0, 0, 0, h, h * i, 0, 0, h * i, h, 0, 0, 0, 0, 1}};
  for (int round = 0; round < 200; ++round) gates.push_back(random_unitary(random, 4));
  // One-bit gates on both bits, and what is close to them.
  for (int round = 0; round < 50; ++round) {
    const auto a = one_bit_gate(random);
    const auto b = one_bit_gate(random);
    std::vector<Complex> both;
    for (std::size_t r = 0; r < 4; ++r) {
      for (std::size_t c = 0; c < 4; ++c) both.push_back(a[r / 2 * 2 + c / 2] * b[r % 2 * 2 + c % 2]);
    }
    gates.push_back(both);
  }
  for (std::size_t g = 0; g < gates.size(); ++g) {
    const auto split = split_two_bits(gates[g]);
    ASSERT_TRUE(split.has_value()) << g;
    EXPECT_EQ(is_diagonal_but_for_one_bit_gates(gates[g]), std::abs(split->xx) < 1e-9 && std::abs(split->yy) < 1e-9)
        << g;
    std::vector<LocalOperation> parts;
    const auto one_bit = [&](int bit, const Matrix2& m) {
      parts.push_back({.kind = LocalKind::matrix, .bits = {bit}, .values = {m.begin(), m.end()}});
    };
    for (const int bit : {0, 1}) one_bit(bit, split->before[bit]);
    parts.push_back({.kind = LocalKind::pauli_rotation, .x_mask = 3, .angle = -2 * split->xx});
    parts.push_back({.kind = LocalKind::pauli_rotation, .x_mask = 3, .z_mask = 3, .angle = -2 * split->yy});
    parts.push_back({.kind = LocalKind::pauli_rotation, .z_mask = 3, .angle = -2 * split->zz});
    for (const int bit : {0, 1}) one_bit(bit, split->after[bit]);
    for (std::size_t j = 0; j < 4; ++j) {
      State state(4);
      state[j] = 1;
      for (const auto& part : parts) state = by_definition(state, part);
      for (std::size_t r = 0; r < 4; ++r) ASSERT_LT(std::abs(state[r] - gates[g][r * 4 + j]), 5e-13) << "gate " << g;
    }
  }
  EXPECT_FALSE(split_two_bits(std::vector<Complex>(16, 0.5)).has_value());
}

TEST(QuantumEngine, NothingToDo) {
  std::vector<Complex> one = {Complex(0.5, 0.25)};
  EXPECT_EQ(apply<double>(one, {}).passes, 0);
  const LocalOperation factor{.kind = LocalKind::diagonal, .values = {Complex(0, 1)}};
  apply<double>(one, {&factor, 1});
  EXPECT_EQ(one[0], Complex(-0.25, 0.5));
}

TEST(QuantumEngine, BadInputNamesTheOperation) {
  std::vector<Complex> state(8);
  const auto message = [&](const LocalOperation& op) -> std::string {
    const std::vector<LocalOperation> operations = {{.kind = LocalKind::diagonal, .values = {1.0}}, op};
    try {
      apply<double>(state, operations);
    } catch (const BadInput& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message({.kind = LocalKind::swap, .bits = {0, 3}}).find("operation 1: bit 3 does not exist"),
            std::string::npos);
  EXPECT_NE(message({.kind = LocalKind::swap, .bits = {1, 1}}).find("named twice"), std::string::npos);
  EXPECT_NE(message({.kind = LocalKind::swap, .bits = {1}}).find("two bits"), std::string::npos);
  EXPECT_NE(message({.kind = LocalKind::matrix, .bits = {1}, .values = {1.0}}).find("expected 4 numbers, found 1"),
            std::string::npos);
  EXPECT_NE(
      message({.kind = LocalKind::diagonal, .bits = {1}, .control_mask = 2, .values = {1.0, 1.0}}).find("control"),
      std::string::npos);
  EXPECT_NE(
      message({.kind = LocalKind::diagonal, .control_mask = 1, .control_values = 2, .values = {1.0}}).find("control"),
      std::string::npos);
  EXPECT_NE(message({.kind = LocalKind::pauli_rotation, .x_mask = 8}).find("beyond"), std::string::npos);
  std::vector<Complex> six(6);
  EXPECT_THROW(apply<double>(six, {}), BadInput);
  EXPECT_THROW((void)norm_squared<double>(state, {.threads = -1}), BadInput);
}

// --- Reductions -------------------------------------------------------------------------------------------------------------------

template <typename T>
void expect_reductions(int bits, double tolerance) {
  Random random(static_cast<std::uint64_t>(bits));
  const auto a = as<T>(random_state(random, bits));
  const auto b = as<T>(random_state(random, bits));
  const std::span<const std::complex<T>> a_span = a;
  const std::span<const std::complex<T>> b_span = b;
  double norm = 0;
  Complex product = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    norm += std::norm(Complex(a[i]));
    product += std::conj(Complex(a[i])) * Complex(b[i]);
  }
  EXPECT_NEAR(norm_squared(a_span), norm, tolerance);
  EXPECT_LT(std::abs(inner_product(a_span, b_span) - product), tolerance);
  for (const int threads : {2, 3}) {
    EXPECT_EQ(norm_squared(a_span, {.threads = threads}), norm_squared(a_span, {.threads = 1}));
    EXPECT_EQ(inner_product(a_span, b_span, {.threads = threads}), inner_product(a_span, b_span, {.threads = 1}));
  }

  std::vector<int> order(static_cast<std::size_t>(bits));
  std::iota(order.begin(), order.end(), 0);
  for (int count = 0; count <= bits; count += 3) {
    std::shuffle(order.begin(), order.end(), random);
    const std::vector<int> some(order.begin(), order.begin() + count);
    std::vector<double> expected(std::size_t{1} << count);
    for (std::uint64_t i = 0; i < a.size(); ++i) {
      std::size_t value = 0;
      for (int k = 0; k < count; ++k) value |= (i >> some[static_cast<std::size_t>(k)] & 1) << k;
      expected[value] += std::norm(Complex(a[i]));
    }
    for (const int threads : {1, 3}) {
      std::vector<double> found(expected.size(), -1);
      probabilities(a_span, some, found, {.threads = threads});
      for (std::size_t v = 0; v < found.size(); ++v) ASSERT_NEAR(found[v], expected[v], tolerance);
    }
  }
}

TEST(QuantumEngine, Reductions) {
  for (const int bits : {1, 3, 6, 11, 15}) {
    expect_reductions<double>(bits, 1e-13);
    expect_reductions<float>(bits, 1e-6);
  }
}

TEST(QuantumEngine, PauliProducts) {
  Random random(5);
  const int bits = 14;  // more than one block
  const State a = random_state(random, bits);
  const State b = random_state(random, bits);
  std::vector<LocalPauli> paulis;
  for (int i = 0; i < 12; ++i)
    paulis.push_back({.x_mask = i < 8 ? 0x2008U : random() % 16384, .z_mask = random() % 16384});
  for (const int threads : {1, 2}) {
    std::vector<Complex> found(paulis.size());
    pauli_products<double>(a, b, paulis, found, {.threads = threads});
    for (std::size_t i = 0; i < paulis.size(); ++i) {
      // exp(-i pi/2 P) = -i P.
      const State rotated = by_definition(b, {.kind = LocalKind::pauli_rotation,
                                              .x_mask = paulis[i].x_mask,
                                              .z_mask = paulis[i].z_mask,
                                              .angle = 2 * quarter});
      Complex expected = 0;
      for (std::size_t j = 0; j < a.size(); ++j) expected += std::conj(a[j]) * rotated[j] * Complex(0, 1);
      EXPECT_LT(std::abs(found[i] - expected), 1e-13);
    }
  }
}

TEST(QuantumEngine, Collapse) {
  Random random(6);
  const State start = random_state(random, 5);
  for (int bit = 0; bit < 5; ++bit) {
    for (const int value : {0, 1}) {
      auto state = start;
      collapse<double>(state, bit, value, 2.0, {.threads = 2});
      for (std::size_t i = 0; i < state.size(); ++i) {
        EXPECT_EQ(state[i], static_cast<int>(i >> bit & 1) == value ? 2.0 * start[i] : Complex(0));
      }
    }
  }
  auto state = start;
  EXPECT_THROW(collapse<double>(state, 5, 0, 1.0), BadInput);
}

TEST(QuantumEngine, Sample) {
  Random random(7);
  for (const int bits : {1, 4, 15}) {
    State state = random_state(random, bits);
    for (auto& a : state) {
      if (number(random, 0, 3) == 0) a = 0;
    }
    state.back() = 0;
    state.front() = 0.1;
    const double norm = norm_squared<double>(state);
    std::vector<double> thresholds(2000);
    for (double& t : thresholds) t = norm * std::uniform_real_distribution<double>()(random);
    thresholds.front() = 0;
    thresholds.back() = std::nextafter(norm, 0.0);
    std::sort(thresholds.begin(), thresholds.end());
    for (const int threads : {1, 2}) {
      std::vector<std::uint64_t> found(thresholds.size());
      sample<double>(state, thresholds, found, {.threads = threads});
      EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
      std::vector<double> sums(state.size() + 1);
      for (std::size_t i = 0; i < state.size(); ++i) sums[i + 1] = sums[i] + std::norm(state[i]);
      for (std::size_t k = 0; k < found.size(); ++k) {
        ASSERT_LT(found[k], state.size());
        ASSERT_NE(state[found[k]], Complex(0));
        ASSERT_GE(thresholds[k], sums[found[k]] - 1e-12);
        ASSERT_LT(thresholds[k], sums[found[k] + 1] + 1e-12);
      }
    }
    std::vector<double> wrong = {0.5, 0.25};
    std::vector<std::uint64_t> found(2);
    EXPECT_THROW(sample<double>(state, wrong, found), BadInput);
  }
}

}  // namespace
}  // namespace onehop::quantum
