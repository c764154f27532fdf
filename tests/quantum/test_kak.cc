// The KAK decomposition of two-bit gates.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "quantum/engine/kak.h"
#include "tests/support/local_operations.h"

namespace onehop::quantum {
namespace {

using namespace testing;

// The factors of a two-bit gate, applied one after the other by definition, reproduce it.
TEST(QuantumKak, FactorsReproduceTwoBitGates) {
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
  // Products of one-bit gates, and gates close to them.
  for (int round = 0; round < 50; ++round) {
    const auto a = one_bit_gate(random);
    const auto b = one_bit_gate(random);
    std::vector<Complex> both;
    for (std::size_t r = 0; r < 4; ++r) {
      for (std::size_t c = 0; c < 4; ++c) both.push_back(a[r / 2 * 2 + c / 2] * b[r % 2 * 2 + c % 2]);
    }
    gates.push_back(both);
    // Controlled phases between one-bit gates; some with very small angles.
    const Complex turn = std::polar(1.0, round % 2 == 0 ? 3.0 - 0.1 * round : std::pow(0.5, round));
    const auto c = one_bit_gate(random);
    const auto d = one_bit_gate(random);
    std::vector<Complex> dressed(16);
    for (std::size_t r = 0; r < 4; ++r) {
      for (std::size_t k = 0; k < 4; ++k) {
        for (std::size_t j = 0; j < 4; ++j) {
          dressed[r * 4 + j] += both[r * 4 + k] * (k == 3 ? turn : 1.0) * c[k / 2 * 2 + j / 2] * d[k % 2 * 2 + j % 2];
        }
      }
    }
    gates.push_back(dressed);
  }
  for (std::size_t g = 0; g < gates.size(); ++g) {
    const auto split = kak_decomposition(gates[g]);
    ASSERT_TRUE(split.has_value()) << g;
    const bool one_angle = std::abs(split->xx) < 1e-9 && std::abs(split->yy) < 1e-9;
    EXPECT_EQ(kak_one_angle(gates[g]).has_value(), one_angle) << g;
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
      Amplitudes state(4);
      state[j] = 1;
      for (const auto& part : parts) state = by_definition(state, part);
      for (std::size_t r = 0; r < 4; ++r) ASSERT_LT(std::abs(state[r] - gates[g][r * 4 + j]), 5e-13) << "gate " << g;
    }
  }
  EXPECT_FALSE(kak_decomposition(std::vector<Complex>(16, 0.5)).has_value());
}

}  // namespace
}  // namespace onehop::quantum
