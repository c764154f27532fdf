// Norms, probabilities, Pauli strings, collapse and sampling on one rank's amplitudes.
#include "onehop/quantum/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "quantum/kernels/kernels.h"
#include "tests/support/local_operations.h"

namespace onehop::quantum {
namespace {

using namespace testing;

const double quarter = std::acos(-1.0) / 2;

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

TEST(QuantumEngineReduce, Reductions) {
  for (const int bits : {1, 3, 6, 11, 15}) {
    expect_reductions<double>(bits, 1e-13);
    expect_reductions<float>(bits, 1e-6);
  }
}

TEST(QuantumEngineReduce, PauliProducts) {
  Random random(5);
  const int bits = 14;  // more than one block
  const Amplitudes a = random_state(random, bits);
  const Amplitudes b = random_state(random, bits);
  std::vector<LocalPauli> paulis;
  for (int i = 0; i < 12; ++i)
    paulis.push_back({.x_mask = i < 8 ? 0x2008U : random() % 16384, .z_mask = random() % 16384});
  for (const int threads : {1, 2}) {
    std::vector<Complex> found(paulis.size());
    pauli_products<double>(a, b, paulis, found, {.threads = threads});
    for (std::size_t i = 0; i < paulis.size(); ++i) {
      // exp(-i pi/2 P) = -i P.
      const Amplitudes rotated = by_definition(b, {.kind = LocalKind::pauli_rotation,
                                                   .x_mask = paulis[i].x_mask,
                                                   .z_mask = paulis[i].z_mask,
                                                   .angle = 2 * quarter});
      Complex expected = 0;
      for (std::size_t j = 0; j < a.size(); ++j) expected += std::conj(a[j]) * rotated[j] * Complex(0, 1);
      EXPECT_LT(std::abs(found[i] - expected), 1e-13);
    }
  }
}

// All instruction sets, with bits of the Pauli strings inside and outside a vector.
template <typename T>
void expect_signed_products(double tolerance) {
  Random random(10);
  for (const int bits : {3, 4, 7}) {
    const auto a = as<T>(random_state(random, bits));
    const auto b = as<T>(random_state(random, bits));
    for (int round = 0; round < 40; ++round) {
      const std::size_t x = random() % a.size();
      const std::size_t z = random() % a.size();
      Complex expected = 0;
      for (std::size_t j = 0; j < a.size(); ++j) {
        const Complex product = std::conj(Complex(a[j ^ x])) * Complex(b[j]);
        expected += std::popcount(j & z) % 2 == 0 ? product : -product;
      }
      for (const std::string& simd : simd_names()) {
        const Complex found = kernels_named<T>(simd).signed_product(a.data(), b.data(), a.size(), x, z);
        EXPECT_LT(std::abs(found - expected), tolerance) << simd << ", " << bits << " bits, x " << x << ", z " << z;
      }
    }
  }
}

TEST(QuantumEngineReduce, SignedProductsOfEveryKindOfVectors) {
  expect_signed_products<double>(1e-14);
  expect_signed_products<float>(1e-14);
}

// Strings between a state and itself: single ones and many with the same x_mask, with near and far partners. The engine
// computes only half of the products, as the other half is the conjugate.
TEST(QuantumEngineReduce, PauliProductsWithinOneState) {
  Random random(11);
  const int bits = 15;  // more than one block
  const Amplitudes a = random_state(random, bits);
  std::vector<LocalPauli> paulis;
  for (const std::uint64_t x : {0x0U, 0x1U, 0x6U, 0x2000U, 0x4001U, 0x6003U}) {
    for (int i = 0; i < (x == 0x4001U ? 30 : 2); ++i) paulis.push_back({.x_mask = x, .z_mask = random() % a.size()});
  }
  std::vector<Complex> found(paulis.size());
  pauli_products<double>(a, a, paulis, found, {.threads = 2});
  for (std::size_t i = 0; i < paulis.size(); ++i) {
    const auto& [x, z] = paulis[i];
    constexpr Complex powers[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    Complex expected = 0;
    for (std::uint64_t j = 0; j < a.size(); ++j) {
      expected += std::conj(a[j ^ x]) * a[j] * (std::popcount(j & z) % 2 == 0 ? 1.0 : -1.0);
    }
    EXPECT_LT(std::abs(found[i] - expected * powers[std::popcount(x & z) % 4]), 1e-13) << x << " " << z;
  }
}

TEST(QuantumEngineReduce, Collapse) {
  Random random(6);
  const Amplitudes start = random_state(random, 5);
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

TEST(QuantumEngineReduce, Sample) {
  Random random(7);
  for (const int bits : {1, 4, 15}) {
    Amplitudes state = random_state(random, bits);
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
