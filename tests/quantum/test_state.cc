// State vectors, with threads as ranks: layouts, exchanges and queries against plain arithmetic on all amplitudes.
#include "onehop/quantum/state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "onehop/error.h"
#include "onehop/quantum/circuit.h"
#include "onehop/quantum/observable.h"
#include "tests/support/ranks.h"
#include "tests/support/thrown.h"

namespace onehop::quantum {
namespace {

using testing::on_threads;

std::vector<Complex> random_vector(int qubits, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Complex> v(std::size_t{1} << qubits);
  double norm = 0;
  for (Complex& a : v) {
    a = {normal(random), normal(random)};
    norm += std::norm(a);
  }
  for (Complex& a : v) a /= std::sqrt(norm);
  return v;
}

double distance(const std::vector<Complex>& a, const std::vector<Complex>& b) {
  double worst = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

TEST(State, KeepsItsAmplitudesThroughExchangesAndFlips) {
  for (const int ranks : {1, 2, 4, 8}) {
    on_threads(ranks, [&](const Group& group) {
      const int n = 6;
      auto expected = random_vector(n, 3);
      State state(group, n);
      state.set_amplitudes(expected);
      std::mt19937 random(17);  // the same on every rank
      for (int round = 0; round < 12; ++round) {
        std::vector<int> permutation(n);
        for (int i = 0; i < n; ++i) permutation[static_cast<std::size_t>(i)] = i;
        std::shuffle(permutation.begin(), permutation.end(), random);
        state.permute(permutation);
        const int qubit = static_cast<int>(random() % n);
        state.flip(qubit);
        auto flipped = expected;
        for (std::size_t i = 0; i < expected.size(); ++i) flipped[i ^ (std::size_t{1} << qubit)] = expected[i];
        expected = flipped;
        EXPECT_EQ(distance(state.gather(), expected), 0);
      }
      const auto local = state.local<double>();
      for (std::size_t place = 0; place < local.size(); ++place)
        EXPECT_EQ(local[place], expected[state.index_of(place)]);
      state.restore_order();
      EXPECT_EQ(state.flips(), 0U);
      const std::size_t first = static_cast<std::size_t>(group.rank()) * local.size();
      for (std::size_t place = 0; place < local.size(); ++place) EXPECT_EQ(local[place], expected[first + place]);
      EXPECT_THROW((void)state.local<float>(), BadInput);
    });
  }
}

TEST(State, MovesWhatAnExchangeOfBitsMust) {
  on_threads(8, [](const Group& group) {
    State state(group, 8);
    const std::vector<std::pair<int, int>> swaps = {{1, 5}, {4, 7}};
    state.exchange(swaps);
    EXPECT_EQ(state.counters().bytes_sent, 16 * 32 * 3 / 4);
    EXPECT_EQ(state.counters().exchanges, 1);
    const int qubits[] = {0, 5};
    state.make_local(qubits);
    EXPECT_EQ(state.counters().exchanges, 1) << "both are local already";
  });
}

TEST(State, TextOfObservables) {
  const PauliSum sum = PauliSum::parse("Z0 Z1 + 0.5*X2 - 2 I - Y3*X0");
  ASSERT_EQ(sum.terms.size(), 4U);
  EXPECT_EQ(sum.terms[1], (PauliTerm{0.5, {{2, 'X'}}}));
  EXPECT_EQ(sum.terms[2], (PauliTerm{-2, {}}));
  EXPECT_EQ(sum.terms[3], (PauliTerm{-1, {{3, 'Y'}, {0, 'X'}}}));
  EXPECT_EQ(sum.qubits(), 4);
  for (const std::string& text :
       {std::string(), std::string("Z"), std::string("Z0 +"), std::string("Z0 Q1"), std::string("Z0 Z0"),
        std::string("1 2"), std::string("Z99"), std::string("Z0 \0005", 5), "Z0 " + std::string(10'000, 'Q')}) {
    EXPECT_LT(onehop::testing::thrown<BadInput>([&] { (void)PauliSum::parse(text); }).size(), 1000U) << text;
  }
}

TEST(State, RefusesWhatDoesNotFitBeforeAnythingIsAllocated) {
  on_threads(2, [](const Group& group) {
    try {
      const State state(group, 50);
      FAIL() << "there should not be so much memory";
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("50 qubits in double precision needs"), std::string::npos) << what;
      EXPECT_NE(what.find("qubits fit"), std::string::npos) << what;
    }
  });
  const MemoryNeed need = memory_need(30, 4, Precision::double_precision, 4);
  EXPECT_EQ(need.in_all, 4 * need.per_rank);
  EXPECT_GE(need.per_rank, std::int64_t{16} << 28);
  EXPECT_LE(static_cast<double>(need.per_rank), 1.02 * 16 * (1 << 28));
  EXPECT_FALSE(memory_need(60, 2, Precision::double_precision, 2).fits());
}

TEST(State, QueriesCompareTheirArgumentsBetweenRanks) {
  on_threads(2, [](const Group& group) {
    State state(group, 5);
    State other(group, 5);
    if (group.rank() == 1) other.set_layout({1, 0, 2, 3, 4}, 0);
    const int rank = group.rank();
    const std::vector<int> qubit{rank};
    const std::vector<std::uint64_t> index{static_cast<std::uint64_t>(rank)};
    const std::vector<PauliSum> sums{PauliSum::parse(rank == 0 ? "Z0" : "2 Z0")};
    const std::vector<PauliSum> longer(static_cast<std::size_t>(1 + rank), PauliSum::parse("X4"));
    const auto refused = [](const auto& query, const char* what) {
      testing::expect_says<Mismatch>(query, std::string("expected the same ") + what + " on every rank");
    };
    refused([&] { return state.probabilities(qubit); }, "qubits");
    refused([&] { return state.probability_of_one(rank); }, "qubits");
    refused([&] { return state.probabilities(std::span(qubit).first(static_cast<std::size_t>(rank))); }, "qubits");
    refused([&] { return state.amplitudes(index); }, "indices");
    refused([&] { return state.reduced_density_matrix(qubit); }, "qubits");
    refused([&] { return state.inner_product(other); }, "layouts");
    refused([&] { return expectations(state, sums); }, "observables");
    refused([&] { return expectations(state, longer); }, "observables");
    refused([&] { return variances(state, sums); }, "observables");
    testing::expect_says<Mismatch>([&] { return rank == 0 ? state.fidelity_estimate() : state.probability_of_one(0); },
                                   "expected");
    // What one rank alone refuses.
    const std::vector<std::uint64_t> far{rank == 0 ? 0U : 32U};
    if (rank == 0) {
      testing::expect_says<Mismatch>([&] { return state.amplitudes(far); }, "rank 1 refuses its own: amplitude 32");
      testing::expect_says<Mismatch>([&] { return state.probability_of_one(0); }, "rank 1 refuses its own: qubit 9");
    } else {
      testing::expect_says<BadInput>([&] { return state.amplitudes(far); }, "amplitude 32 does not exist");
      testing::expect_says<BadInput>([&] { return state.probability_of_one(9); }, "qubit 9 does not exist");
    }
    EXPECT_NEAR(state.probability_of_one(0), 0, 1e-15);
  });
}

}  // namespace
}  // namespace onehop::quantum
