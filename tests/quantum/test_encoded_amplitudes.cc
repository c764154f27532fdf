// Encoded states against the same operations in double precision.
#include "quantum/engine/encoded_amplitudes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "onehop/quantum/observable.h"
#include "onehop/quantum/simulator.h"
#include "quantum/engine/engine_encoded.h"
#include "quantum/engine/engine_run.h"
#include "tests/support/local_operations.h"
#include "tests/support/ranks.h"
#include "tests/support/thrown.h"

namespace onehop::quantum {
namespace {

using namespace testing;
using onehop::testing::on_threads;

Amplitudes normalised(Amplitudes state) {
  double sum = 0;
  for (const Complex& a : state) sum += std::norm(a);
  for (Complex& a : state) a /= std::sqrt(sum);
  return state;
}

// Amplitudes and their bytes.
struct Encoded {
  std::vector<std::byte> bytes;
  EncodedAmplitudes amplitudes;

  Encoded(Codec codec, const Amplitudes& state) {
    const auto bits = static_cast<int>(std::bit_width(state.size())) - 1;
    bytes.resize(static_cast<std::size_t>(EncodedAmplitudes::bytes_of_block(codec)) * (state.size() >> 4));
    amplitudes = EncodedAmplitudes(codec, bits, bytes);
    auto values = as<float>(state);
    amplitudes.finish_pass(amplitudes.write(0, values, 2));
  }
  [[nodiscard]] std::vector<std::complex<float>> all() const {
    std::vector<std::complex<float>> values(std::size_t{1} << amplitudes.bits());
    amplitudes.read(0, values, 2);
    return values;
  }
};

template <typename T>
double fidelity(const Amplitudes& a, const std::vector<std::complex<T>>& b) {
  Complex product = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += std::conj(a[i]) * Complex(b[i]);
    norm += std::norm(Complex(b[i]));
  }
  return std::norm(product) / norm;
}

TEST(EncodedAmplitudes, RoundingSumsGiveWhatNoFactorUndoes) {
  // (3, 4) becomes (3.3, 4.4), which is only longer, or (4, 3), at a cosine of 24/25.
  EXPECT_NEAR((RoundingSums{25, 30.25, 0.25}.lost()), 0, 1e-12);
  EXPECT_NEAR((RoundingSums{25, 25, 2}.lost()), 25 * (1 - 24.0 * 24 / 625), 1e-12);
  EXPECT_EQ((RoundingSums{}.lost()), 0);
}

TEST(EncodedAmplitudes, OperationsOfEveryKindOnManyTiles) {
  Random random(5);
  for (int round = 0; round < 12; ++round) {
    const int bits = round == 11 ? least_bits_in_parts : number(random, 9, 13);
    std::vector<LocalOperation> operations;
    for (int i = 0; i < 12; ++i) {
      // Operations that no tile takes are in the next test.
      LocalOperation op = random_operation(random, bits, 3);
      const TileSizes sizes{bits, 5};
      const PassList alone = make_pass_list(bits, {&op, 1}, sizes);
      if (alone.passes.empty() || alone.passes.front().tile != 0) operations.push_back(op);
    }
    const Amplitudes start = normalised(random_state(random, bits));
    double most = 1;
    const Amplitudes expected = by_definition(start, operations, most);
    const TileSizes sizes{round == 11 ? bits : number(random, 9, bits), 5};
    const PassList list = make_pass_list(bits, operations, sizes);
    if (std::any_of(list.passes.begin(), list.passes.end(), [](const Pass& pass) { return pass.tile == 0; })) continue;
    Encoded found(Codec::bf16, start);
    const EngineStates<float> states{.encoded = &found.amplitudes};
    run_passes<float>(states, operations, list, sizes, kernels<float>(), number(random, 1, 4));
    const auto values = found.all();
    const double norm = std::sqrt(std::accumulate(expected.begin(), expected.end(), 0.0,
                                                  [](double sum, Complex a) { return sum + std::norm(a); }));
    ASSERT_LE(distance(expected, values), 5e-2 * norm) << "round " << round;
    if (norm == 0) continue;
    ASSERT_GT(fidelity(normalised(expected), values), 1 - 1e-3) << "round " << round;
  }
}

TEST(EncodedAmplitudes, LongStringsAndAllSizes) {
  Random random(6);
  const int bits = 20;
  const std::uint64_t all = (std::uint64_t{1} << bits) - 1;
  std::vector<LocalOperation> operations;
  for (int i = 0; i < 4; ++i) {
    LocalOperation op{.kind = LocalKind::pauli_rotation, .angle = real(random)};
    op.x_mask = i == 3 ? 0 : all & ~(std::uint64_t{random()} & 0x1111);
    op.z_mask = random() & all;
    if (i == 3) op.control_mask = op.control_values = op.z_mask & 0x5;
    op.z_mask &= ~op.control_mask;
    operations.push_back(op);
  }
  const Amplitudes start = normalised(random_state(random, bits));
  auto expected = as<double>(start);
  apply<double>(expected, operations, {.threads = 2});
  Encoded found(Codec::q8, start);
  const double lost_before = found.amplitudes.lost();
  apply_encoded(found.amplitudes, operations, {.threads = 2});
  const double infidelity = 1 - fidelity(expected, found.all());
  EXPECT_LT(infidelity, 2e-3);
  EXPECT_GT(found.amplitudes.lost(), lost_before);
  EXPECT_NEAR(found.amplitudes.lost() / infidelity, 1, 0.2);
  const LocalOperation wide{.kind = LocalKind::matrix,
                            .bits = {7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
                            .values = std::vector<Complex>(std::size_t{1} << 20, 1.0)};
  onehop::testing::expect_says<BadInput>([&] { return apply_encoded(found.amplitudes, {&wide, 1}, {}).passes; },
                                         "precision single");
  for (int small = 4; small < 12; ++small) {
    const Amplitudes before = normalised(random_state(random, small));
    const LocalOperation op = random_operation(random, small, 2);
    double most = 1;
    const Amplitudes after = by_definition(before, {op}, most);
    Encoded state(Codec::bf16, before);
    apply_encoded(state.amplitudes, {&op, 1}, {.threads = 1});
    EXPECT_GT(fidelity(normalised(after), state.all()), 1 - 1e-4) << small;
  }
}

// Small integers over a power of two, which fp16 keeps as they are in any order.
Amplitudes integers(Random& random, int bits) {
  Amplitudes state(std::size_t{1} << bits);
  for (Complex& a : state) a = Complex(number(random, -1000, 1000), number(random, -1000, 1000)) / 2048.0;
  return state;
}

TEST(EncodedState, PermutationsMoveEveryAmplitude) {
  for (const int ranks : {1, 2, 4}) {
    on_threads(ranks, [&](const Group& group) {
      Random random(7);  // the same on every rank
      const int n = 9;
      Amplitudes expected = integers(random, n);
      State state(group, n, Precision::fp16);
      state.set_amplitudes(expected, Norm::any);
      for (int round = 0; round < 12; ++round) {
        state.permute(shuffled(random, n));
        const int qubit = number(random, 0, n - 1);
        state.flip(qubit);
        Amplitudes flipped = expected;
        for (std::size_t i = 0; i < expected.size(); ++i) flipped[i ^ (std::size_t{1} << qubit)] = expected[i];
        expected = flipped;
        ASSERT_EQ(distance(expected, state.gather()), 0) << ranks << " ranks, round " << round;
      }
      state.restore_order();
      ASSERT_EQ(distance(expected, state.gather()), 0);
      const std::vector<std::uint64_t> some{0, 17, 300, 511};
      const Amplitudes found = state.amplitudes(some);
      for (std::size_t i = 0; i < some.size(); ++i) EXPECT_EQ(found[i], expected[some[i]]);
      EXPECT_EQ(state.fidelity_estimate(), 1);
    });
  }
}

TEST(EncodedState, QueriesAreThoseOfTheAmplitudes) {
  const int n = 20;  // of several windows
  Random random(8);
  const Amplitudes start = normalised(random_state(random, n));
  const std::vector<PauliSum> sums{PauliSum::parse("Z0 + 0.5*X19 Y3 - X18 X17 Z19"), PauliSum::parse("Y19 Z2")};
  for (const int ranks : {1, 2, 4}) {
    on_threads(ranks, [&](const Group& group) {
      State state(group, n, Precision::fp16);
      state.set_amplitudes(start);
      State plain(group, n);
      plain.set_amplitudes(state.gather(), Norm::any);
      EXPECT_NEAR(state.norm_squared(), 1, 1e-6);
      const std::vector<int> qubits{19, 0, 7, 18};
      const auto expected = plain.probabilities(qubits);
      const auto found = state.probabilities(qubits);
      for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6);
      const auto values = expectations(state, sums);
      const auto exact = expectations(plain, sums);
      for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(std::abs(values[i] - exact[i]), 0, 1e-6);
      const auto rho = state.reduced_density_matrix(qubits);
      const auto rho_plain = plain.reduced_density_matrix(qubits);
      for (std::size_t i = 0; i < rho.size(); ++i) EXPECT_NEAR(std::abs(rho[i] - rho_plain[i]), 0, 1e-5);
      std::vector<int> all(n);
      std::iota(all.begin(), all.end(), 0);
      const auto shots = sample(state, all, 500, 3);
      const auto same = sample(plain, all, 500, 3);
      const auto differ = std::inner_product(shots.begin(), shots.end(), same.begin(), 0, std::plus<>(),
                                             [](auto a, auto b) { return a == b ? 0 : 1; });
      EXPECT_LE(differ, 5);
      for (const int qubit : {2, 19}) {
        const double one = state.probability_of_one(qubit);
        state.collapse(qubit, 1, one);
        EXPECT_NEAR(state.probability_of_one(qubit), 1, 1e-6);
        EXPECT_NEAR(state.norm_squared(), 1, 1e-5);
      }
      State other(group, n, Precision::fp16);
      other.copy_from(state);
      EXPECT_NEAR(state.fidelity(other), 1, 1e-5);
    });
  }
}

TEST(EncodedState, RunsCircuitsOnAnyRanks) {
  const int n = 12;
  Circuit c;
  c.qubits = n;
  Random random(9);
  for (int i = 0; i < 150; ++i) {
    const auto qubits = shuffled(random, n);
    c.operations.push_back(gate("u3", {qubits[0]}, {real(random), real(random), real(random)}));
    c.operations.push_back(gate("cx", {qubits[1], qubits[2]}));
  }
  for (const int ranks : {1, 2, 4}) {
    on_threads(ranks, [&](const Group& group) {
      SimulationOptions options;
      const SimulationResult exact = simulate(c, group, options);
      for (const auto& [precision, worst] : {std::pair(Precision::q8, 2e-3), std::pair(Precision::q6, 3e-2),
                                             std::pair(Precision::fp16, 1e-6), std::pair(Precision::bf16, 1e-3)}) {
        options.precision = precision;
        const SimulationResult found = simulate(c, group, options);
        const double infidelity =
            1 - fidelity(exact.factors.at(0).state->gather(), found.factors.at(0).state->gather());
        EXPECT_LT(infidelity, worst) << to_string(precision);
        EXPECT_LT(found.fidelity_estimate, 1);
        EXPECT_NEAR((1 - found.fidelity_estimate) / infidelity, 1, 0.5) << to_string(precision);
        EXPECT_NEAR(found.factors.at(0).state->norm_squared(), 1, 1e-4);
      }
    });
  }
}

TEST(EncodedState, PartsOfFewQubitsAreNotEncoded) {
  Circuit c;
  c.qubits = 6;
  for (const int qubit : {1, 2, 3, 4, 5}) c.operations.push_back(gate("cx", {0, qubit}));
  c.operations[0] = gate("h", {0});
  c.operations.push_back(gate("ry", {1}, {0.4}));  // in no pair with another qubit
  SimulationOptions options;
  options.precision = Precision::q8;
  options.observables = {PauliSum::parse("Z1"), PauliSum::parse("Z2 Z3")};
  const SimulationResult found = simulate(c, Group::alone(), options);
  EXPECT_NEAR(found.expectations[0].real(), std::cos(0.4), 1e-6);
  EXPECT_NEAR(found.expectations[1].real(), 1, 1e-2);
}

TEST(EncodedState, RefusesWhatItCannotDo) {
  const Group alone = Group::alone();
  EXPECT_THROW(State(alone, 3, Precision::q8), BadInput);
  State state(alone, 6, Precision::q8);
  EXPECT_THROW((void)state.local<float>(), BadInput);
  EXPECT_THROW(state.set_part_bits(3), BadInput);
  EXPECT_THROW((void)variances(state, {}), BadInput);
  EXPECT_THROW((void)precision_from_string("q7"), BadInput);
}

}  // namespace
}  // namespace onehop::quantum
