#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "onehop/machine/simulate.h"
#include "tests/machine/machines.h"

namespace onehop {
namespace {

using testing::guess;
using testing::level;
using testing::machine;

// One machine of 64 processors for each kind of routing.
std::vector<Machine> symmetric_machines() {
  Level torus = level("system", Routing::torus, {4, 2, 4});
  torus.hop_latency = guess(1e-7);
  Level fly = level("system", Routing::dragonfly, {2, 4, 4});
  fly.hop_latency = guess(1e-7);
  Level tree = level("system", Routing::fat_tree, {4, 2, 4});
  tree.hop_latency = guess(1e-7);
  Level nics = level("system", Routing::all_to_all, {32});
  nics.links = 2;
  const Level host = level("host", Routing::all_to_all, {2});
  const Level mesh = level("host", Routing::mesh, {2});
  return {machine({level("system", Routing::all_to_all, {64})}), machine({host, torus}), machine({host, fly}),
          machine({host, tree}), machine({mesh, nics})};
}

void expect_equal(const Simulation& a, const Simulation& b) {
  EXPECT_NEAR(a.seconds, b.seconds, 1e-9 * b.seconds);
  ASSERT_EQ(a.rounds.size(), b.rounds.size());
  for (std::size_t k = 0; k < a.rounds.size(); ++k) {
    EXPECT_EQ(a.rounds[k].messages, b.rounds[k].messages);
    EXPECT_NEAR(a.rounds[k].bytes, b.rounds[k].bytes, 1e-9 * b.rounds[k].bytes);
    EXPECT_NEAR(a.rounds[k].seconds, b.rounds[k].seconds, 1e-9 * b.seconds);
  }
  EXPECT_NEAR(a.links.front().seconds(), b.links.front().seconds(), 1e-9 * b.links.front().seconds());
  for (std::size_t l = 0; l < a.bytes_by_level.size(); ++l) {
    EXPECT_NEAR(a.bytes_by_level[l].bytes, b.bytes_by_level[l].bytes, 1e-9 * b.rounds[0].bytes);
  }
}

class SymmetricMachine : public ::testing::TestWithParam<std::size_t> {
 protected:
  SymmetricMachine() { exact_.accuracy = 0; }

  // Both ways of simulating the traffic give the same result.
  void expect_same(const Traffic& traffic) const {
    const Simulation by_symmetry = simulate(traffic, net_, exact_);
    EXPECT_TRUE(by_symmetry.by_symmetry);
    const Simulation by_list = simulate(traffic.listed(), net_, exact_);
    EXPECT_FALSE(by_list.by_symmetry);
    expect_equal(by_symmetry, by_list);
  }

  Machine net_ = symmetric_machines().at(GetParam());
  SimulateOptions exact_;
};

TEST_P(SymmetricMachine, SimulatesReductionsAsFromAList) {
  for (const auto& [algorithm, elements] : {std::pair{ReduceAlgorithm::one_shot, std::int64_t{4096}},
                                            {ReduceAlgorithm::two_shot, 4096},
                                            {ReduceAlgorithm::two_shot, std::int64_t{1} << 22}}) {
    SCOPED_TRACE(std::to_string(elements) + " elements");
    expect_same(allreduce_traffic({64, elements, ElementType::float32, Combine::add, algorithm}));
  }
}

TEST_P(SymmetricMachine, SimulatesBitExchangesAsFromAList) {
  for (const std::vector<int>& bits : {std::vector<int>{0}, {5}, {1, 3}, {0, 2, 4, 5}, {0, 1, 2, 3, 4, 5}}) {
    SCOPED_TRACE(std::to_string(bits.size()) + " bits");
    Traffic traffic{"bits", 64, std::vector<TrafficRound>(1), 0};
    traffic.rounds[0].kind = TrafficRound::Kind::bits;
    traffic.rounds[0].bits = bits;
    traffic.rounds[0].bytes = 1 << 16;
    expect_same(traffic);
  }
}

Traffic exchange(int ranks, const std::vector<int>& bits, bool mixed) {
  Traffic traffic{"bits", ranks, std::vector<TrafficRound>(1), 0};
  traffic.rounds[0].kind = TrafficRound::Kind::bits;
  traffic.rounds[0].bits = bits;
  traffic.rounds[0].bytes = 1 << 14;
  traffic.rounds[0].mixed = mixed;
  return traffic;
}

// Tori on which the bits of an exchange fill whole dimensions, the top or the bottom of some, or leave gaps.
std::vector<Machine> tori() {
  std::vector<Machine> machines;
  for (const std::vector<std::int64_t>& extents : {std::vector<std::int64_t>{64}, {16, 4}, {4, 4, 4}}) {
    Level torus = level("system", Routing::torus, extents);
    torus.hop_latency = guess(1e-7);
    machines.push_back(machine({torus}));
  }
  Level torus = level("system", Routing::torus, {16, 2});
  torus.hop_latency = guess(1e-7);
  machines.push_back(machine({level("node", Routing::all_to_all, {2}), torus}));
  return machines;
}

class TorusMachine : public ::testing::TestWithParam<std::size_t> {};

TEST_P(TorusMachine, ExchangesOfAllSetsOfBitsAreThoseOfTheList) {
  const Machine net = tori().at(GetParam());
  SimulateOptions exact;
  exact.accuracy = 0;
  for (unsigned set = 1; set < 63; ++set) {  // all six bits are traffic between all ranks
    std::vector<int> bits;
    for (int bit = 0; bit < 6; ++bit) {
      if ((set >> bit & 1U) != 0) bits.push_back(bit);
    }
    SCOPED_TRACE("set " + std::to_string(set));
    const Traffic traffic = exchange(64, bits, bits.size() > 4);
    const Simulation by_symmetry = simulate(traffic, net, exact);
    EXPECT_TRUE(by_symmetry.by_symmetry);
    expect_equal(by_symmetry, simulate(traffic.listed(), net, exact));
  }
}

INSTANTIATE_TEST_SUITE_P(Simulate, TorusMachine, ::testing::Range<std::size_t>(0, tori().size()));

TEST(Simulate, OneRankStandsForManyOnATorus) {
  const Machine net = machine({level("system", Routing::torus, {16, 16})});
  const auto classes = [&](const std::vector<int>& bits) {
    return simulate(exchange(256, bits, true), net).timeline_ranks.size();
  };
  EXPECT_EQ(classes({0, 1, 2, 3, 4, 5, 6, 7}), 1U);  // whole dimensions
  EXPECT_EQ(classes({0, 1, 2, 3, 6, 7}), 1U);        // one of them, and the top of the other
  EXPECT_EQ(classes({0, 1, 2, 4, 5, 6}), 16U);       // blocks of 8 x 8, mirrored in both dimensions
  EXPECT_EQ(classes({0, 1, 2, 3, 4, 7}), 2U);        // a pair and the top bit: a period of 2, not mirrored
}

INSTANTIATE_TEST_SUITE_P(Simulate, SymmetricMachine, ::testing::Range<std::size_t>(0, symmetric_machines().size()));

}  // namespace
}  // namespace onehop
