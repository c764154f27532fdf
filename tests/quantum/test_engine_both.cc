// Operations on two states at once, with derivatives, against sums over amplitudes by definition.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "quantum/engine/engine_program.h"
#include "quantum/engine/engine_run.h"
#include "tests/support/local_operations.h"

namespace onehop::quantum {
namespace {

using namespace testing;

// <bra| Q P |ket>, amplitude by amplitude: each qubit's letter moves and multiplies by itself.
Complex product(const Amplitudes& bra, const Amplitudes& ket, const LocalOperation& op) {
  Complex sum = 0;
  for (std::size_t i = 0; i < ket.size(); ++i) {
    if ((i & op.control_mask) != op.control_values) continue;
    std::size_t to = i;
    Complex factor = 1;
    for (int bit = 0; (ket.size() >> bit) > 1; ++bit) {
      const bool x = (op.x_mask >> bit & 1) != 0;
      const bool z = (op.z_mask >> bit & 1) != 0;
      const bool one = (i >> bit & 1) != 0;
      if (x) to ^= std::size_t{1} << bit;
      if (z && !x && one) factor = -factor;
      if (z && x) factor *= one ? Complex(0, -1) : Complex(0, 1);
    }
    sum += std::conj(bra[to]) * factor * ket[i];
  }
  return sum;
}

LocalOperation random_varying(Random& random, int bits, int probe) {
  LocalOperation op{.varies = true, .weight = real(random), .probe = probe};
  std::vector<int> order = shuffled(random, bits);
  const int letters = number(random, 0, 9) < 6 ? 1 : number(random, 1, 4);
  for (int k = 0; k < letters; ++k) {
    const std::uint64_t mask = std::uint64_t{1} << order[static_cast<std::size_t>(k)];
    const int letter = number(random, 0, 2);
    if (letter != 2) op.x_mask |= mask;
    if (letter != 0) op.z_mask |= mask;
  }
  op.kind = LocalKind::pauli_rotation;
  if (number(random, 0, 3) == 0) {
    op.kind = LocalKind::diagonal;
    op.x_mask = op.z_mask = 0;
    op.values = {1};
  }
  const int controls = op.kind == LocalKind::diagonal ? number(random, 0, 3) : std::max(0, number(random, -3, 2));
  for (int k = 0; k < controls; ++k) {
    const std::uint64_t mask = std::uint64_t{1}
                               << order[static_cast<std::size_t>(letters) + static_cast<std::size_t>(k)];
    op.control_mask |= mask;
    if (number(random, 0, 1) == 1) op.control_values |= mask;
  }
  const double special[] = {0, 3.141592653589793, 6.283185307179586};
  set_angle(op, number(random, 0, 7) == 0 ? special[number(random, 0, 2)] / op.weight : 3 * real(random));
  return op;
}

struct Case {
  Amplitudes ket, bra;
  std::vector<LocalOperation> operations;
  Amplitudes last_ket, last_bra;
  std::vector<double> derivatives;
};

Case random_case(Random& random, int bits) {
  Case one{random_state(random, bits), random_state(random, bits), {}, {}, {}, {}};
  const int count = number(random, 1, 50);
  int probes = 0;
  for (int i = 0; i < count; ++i) {
    if (number(random, 0, 2) != 0) {
      one.operations.push_back(random_varying(random, bits, probes++));
    } else {
      LocalOperation op = random_operation(random, bits, 3);
      // Derivatives need gates that keep products, as unitary ones do.
      if (op.kind == LocalKind::matrix) op.values = random_unitary(random, std::size_t{1} << op.bits.size());
      if (op.kind == LocalKind::diagonal) {
        for (Complex& value : op.values) value = std::polar(1.0, real(random));
      }
      one.operations.push_back(op);
    }
  }
  one.last_ket = one.ket;
  one.last_bra = one.bra;
  one.derivatives.assign(static_cast<std::size_t>(probes), 0);
  for (const LocalOperation& op : one.operations) {
    if (op.probe >= 0) {
      const double factor = op.kind == LocalKind::diagonal ? -2 * op.weight : op.weight;
      one.derivatives[static_cast<std::size_t>(op.probe)] = factor * product(one.last_bra, one.last_ket, op).imag();
    }
    one.last_ket = by_definition(one.last_ket, op);
    one.last_bra = by_definition(one.last_bra, op);
  }
  return one;
}

template <typename T>
void expect_case(const Case& one, const TileSizes& sizes, const Kernels<T>& kernels, int threads, double tolerance) {
  const int bits = std::bit_width(one.ket.size()) - 1;
  const PassList list = make_pass_list(bits, one.operations, sizes);
  auto ket = as<T>(one.ket);
  auto bra = as<T>(one.bra);
  std::vector<double> derivatives(one.derivatives.size());
  run_passes<T>({ket, bra, derivatives}, one.operations, list, sizes, kernels, threads);
  EXPECT_LT(distance(one.last_ket, ket), tolerance);
  EXPECT_LT(distance(one.last_bra, bra), tolerance);
  for (std::size_t d = 0; d < derivatives.size(); ++d) {
    EXPECT_NEAR(derivatives[d], one.derivatives[d], 10 * tolerance) << "probe " << d;
  }
}

TEST(QuantumEngineBoth, TilesOfEverySize) {
  Random random(11);
  for (int round = 0; round < 40; ++round) {
    const int bits = number(random, 10, 12);
    const Case one = random_case(random, bits);
    const TileSizes sizes{number(random, 9, bits), number(random, 4, 6), number(random, 0, 1) == 0};
    for (const std::string& simd : simd_names()) {
      SCOPED_TRACE(simd + ", round " + std::to_string(round));
      expect_case<double>(one, sizes, kernels_named<double>(simd), number(random, 1, 3), 1e-12);
      expect_case<float>(one, sizes, kernels_named<float>(simd), number(random, 1, 3), 2e-4);
    }
  }
}

// One tile, whose parts the threads share: on any number of them the sums have the same bits.
TEST(QuantumEngineBoth, ThreadsShareATile) {
  Random random(16);
  constexpr int bits = least_bits_in_parts;
  for (int round = 0; round < 2; ++round) {
    const Case one = random_case(random, bits);
    const TileSizes sizes{bits, 6};
    for (const std::string& simd : simd_names()) {
      SCOPED_TRACE(simd + ", round " + std::to_string(round));
      for (int threads = 1; threads <= 5; ++threads) {
        expect_case<double>(one, sizes, kernels_named<double>(simd), threads, 1e-12);
      }
      expect_case<float>(one, sizes, kernels_named<float>(simd), number(random, 1, 4), 4e-4);
    }
  }
}

TEST(QuantumEngineBoth, SmallStatesWithoutTiles) {
  Random random(12);
  for (int round = 0; round < 30; ++round) {
    const Case one = random_case(random, number(random, 7, 9));
    expect_case<double>(one, {}, kernels<double>(), number(random, 1, 2), 1e-12);
  }
}

// A compiled program that receives other angles gives what a new plan gives, whether the passes stay or not.
TEST(QuantumEngineBoth, RefilledProgramsAreThoseOfTheNewAngles) {
  Random random(15);
  for (int round = 0; round < 20; ++round) {
    const int bits = number(random, 6, 13);
    const Case one = random_case(random, bits);
    std::vector<LocalOperation> operations = one.operations;
    std::vector<double> angles;
    for (LocalOperation& op : operations) {
      op.source = static_cast<int>(angles.size());
      angles.push_back(0.3);
      if (op.varies) set_angle(op, angles.back());
    }
    EngineProgram<double> program(bits, operations, EngineProgram<double>::States::two, number(random, 1, 2));
    for (int turn = 0; turn < 2; ++turn) {
      for (std::size_t i = 0; i < operations.size(); ++i) {
        angles[i] = number(random, 0, 9) == 0 ? 3.1415 / operations[i].weight : real(random);
        if (operations[i].varies) set_angle(operations[i], angles[i]);
      }
      program.refill(angles, number(random, 1, 3));
      Amplitudes ket = one.ket;
      Amplitudes bra = one.bra;
      std::vector<double> derivatives(one.derivatives.size());
      program.run({ket, bra, derivatives}, number(random, 1, 3));
      Amplitudes expected_ket = one.ket;
      Amplitudes expected_bra = one.bra;
      std::vector<double> expected(one.derivatives.size());
      apply_to_both<double>(expected_ket, expected_bra, operations, expected);
      EXPECT_LT(distance(expected_ket, ket), 1e-12) << bits << " bits, round " << round;
      EXPECT_LT(distance(expected_bra, bra), 1e-12);
      for (std::size_t d = 0; d < expected.size(); ++d) EXPECT_NEAR(derivatives[d], expected[d], 1e-11);
    }
  }
}

TEST(QuantumEngineBoth, SumsDoNotDependOnThreads) {
  Random random(13);
  // Many tiles, and one that is shared.
  for (const auto& [bits, sizes] :
       {std::pair(12, TileSizes{9, 5}), std::pair(least_bits_in_parts, TileSizes{least_bits_in_parts, 6})}) {
    const Case one = random_case(random, bits);
    std::vector<std::vector<double>> found;
    for (const int threads : {1, 2, 3}) {
      Amplitudes ket = one.ket;
      Amplitudes bra = one.bra;
      found.emplace_back(one.derivatives.size());
      run_passes<double>({ket, bra, found.back()}, one.operations, make_pass_list(bits, one.operations, sizes), sizes,
                         kernels<double>(), threads);
    }
    EXPECT_EQ(found[0], found[1]);
    EXPECT_EQ(found[0], found[2]);
  }
}

TEST(QuantumEngineBoth, RefusesOtherSizesAndProbes) {
  Amplitudes ket(8);
  Amplitudes bra(4);
  std::vector<double> derivatives(1);
  EXPECT_THROW(apply_to_both<double>(ket, bra, {}, derivatives), BadInput);
  bra.resize(8);
  const std::vector<LocalOperation> fixed{{.kind = LocalKind::pauli_rotation, .x_mask = 1, .probe = 0}};
  EXPECT_THROW(apply_to_both<double>(ket, bra, fixed, derivatives), BadInput);
  const std::vector<LocalOperation> beyond{
      {.kind = LocalKind::pauli_rotation, .x_mask = 1, .varies = true, .probe = 1}};
  EXPECT_THROW(apply_to_both<double>(ket, bra, beyond, derivatives), BadInput);
}

TEST(QuantumEnginePaulis, AddsStringsLikeTheirDefinition) {
  Random random(14);
  for (int round = 0; round < 30; ++round) {
    const int bits = number(random, 1, 14);
    const Amplitudes in = random_state(random, bits);
    Amplitudes expected = random_state(random, bits);
    const Amplitudes start = expected;
    const std::uint64_t all = (std::uint64_t{1} << bits) - 1;
    std::vector<LocalPauli> paulis;
    std::vector<Complex> coefficients;
    const int count = number(random, 1, round % 3 == 0 ? 90 : 20);
    for (int k = 0; k < count; ++k) {  // many share the mask 0
      paulis.push_back({number(random, 0, 1) == 0 ? 0 : random() & all, random() & all});
      coefficients.push_back(complex(random));
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (bits > 5 && i % 97 != 0) continue;  // some columns only
        const auto& [x, z] = paulis.back();
        const Complex powers[] = {1, Complex(0, 1), -1, Complex(0, -1)};
        const double sign = std::popcount(i & z) % 2 != 0 ? -1 : 1;
        expected[i ^ x] += coefficients.back() * powers[std::popcount(x & z) % 4] * sign * in[i];
      }
    }
    Amplitudes chosen = in;
    if (bits > 5) {
      for (std::size_t i = 0; i < in.size(); ++i) chosen[i] = i % 97 == 0 ? in[i] : Complex(0);
    }
    Amplitudes found = start;
    add_paulis<double>(chosen, paulis, coefficients, found, {.threads = number(random, 1, 2)});
    EXPECT_LT(distance(expected, found), 1e-12) << bits << " bits, round " << round;
    auto single = as<float>(start);
    const auto chosen_single = as<float>(chosen);
    add_paulis<float>(chosen_single, paulis, coefficients, single);
    EXPECT_LT(distance(expected, single), 1e-4) << bits << " bits, round " << round;
  }
}

}  // namespace
}  // namespace onehop::quantum
