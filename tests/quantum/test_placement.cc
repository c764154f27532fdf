// Placement: the invariants of any placement, and comparison with baselines.
#include "onehop/quantum/placement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "onehop/count.h"
#include "onehop/error.h"
#include "onehop/patterns.h"
#include "tests/support/placed_circuits.h"

namespace onehop::quantum {
namespace {

using testing::circuit_of;
using testing::must_be_local;
using testing::qft;
using testing::qpe;
using testing::random_circuit;
using testing::tfim;

// -- invariants of any placement --

TEST(Placement, StagesDoEveryOperationOnceWhereItsTargetsAreLocal) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const Circuit circuit = random_circuit(7, 60, seed);
    const int ranks = 1 << (seed % 5);
    const Placement p = place(circuit, ranks, {.ranks_per_host = seed % 2 == 0 ? 0 : 2});
    std::vector<int> bits = p.first_bits;
    std::multiset<int> done;
    for (const Stage& stage : p.stages) {
      std::set<int> moved;
      for (const auto& [local, remote] : stage.swaps) {
        EXPECT_LT(local, p.local_bits);
        EXPECT_GE(remote, p.local_bits);
        EXPECT_TRUE(moved.insert(local).second && moved.insert(remote).second);
        for (int& bit : bits) bit = bit == local ? remote : bit == remote ? local : bit;
      }
      EXPECT_EQ(bits, stage.bits);
      EXPECT_DOUBLE_EQ(Placement::fraction_moved(stage), 1 - std::pow(2.0, -static_cast<double>(stage.swaps.size())));
      for (const int index : stage.operations) {
        done.insert(index);
        for (const int wire : must_be_local(p.operations[static_cast<std::size_t>(index)])) {
          EXPECT_LT(bits[static_cast<std::size_t>(wire)], p.local_bits) << "operation " << index;
        }
      }
    }
    for (const int index : done) EXPECT_EQ(done.count(index), 1U);
    EXPECT_TRUE(ranks > 1 || p.exchanges() == 0);
  }
}

TEST(Placement, DiagonalsControlsFlipsAndSwapsMoveNothing) {
  Circuit c = circuit_of(4, {});
  for (int q = 0; q < 4; ++q) c.operations.push_back(gate("h", {q}));
  c.operations.push_back(gate("ccz", {0, 2, 3}));
  for (int q = 2; q < 4; ++q) {
    c.operations.push_back(gate("x", {q}));
    c.operations.push_back(gate("rz", {q}, {0.3}));
    c.operations.push_back(gate("cx", {q, 0}));
    c.operations.push_back(gate("y", {q}));
    c.operations.push_back(gate("crz", {0, q}, {0.2}));
  }
  PlacementOptions in_order;
  in_order.bits = {0, 1, 2, 3};
  in_order.done.assign(c.operations.size(), false);
  std::fill_n(in_order.done.begin(), 4, true);
  c.operations.push_back(gate("swap", {0, 3}));
  c.operations.push_back(gate("h", {3}));  // qubit 3 is wire 0 at this point
  in_order.done.resize(c.operations.size());
  const Placement p = place(c, 4, in_order);
  EXPECT_EQ(p.exchanges(), 0);
  EXPECT_EQ(p.wires, (std::vector<int>{3, 1, 2, 0}));
}

TEST(Placement, AFreshQubitsFirstGatesAreWrittenIntoTheFirstState) {
  const Placement p = place(circuit_of(2, {gate("x", {0}), gate("h", {1}), gate("cx", {0, 1}), gate("h", {0})}), 2);
  EXPECT_EQ(std::abs(p.first_state[0][1]), 1);
  EXPECT_NEAR(p.first_state[1][0].real(), std::sqrt(0.5), 1e-15);
  std::size_t left = 0;
  for (const Stage& stage : p.stages) left += stage.operations.size();
  EXPECT_EQ(left, 2U);
}

TEST(Placement, WhatCannotBeIsRefused) {
  const Circuit c = circuit_of(3, {gate("iswap", {0, 2})});
  EXPECT_THROW((void)place(c, 3), BadInput);
  EXPECT_THROW((void)place(c, 0), BadInput);
  EXPECT_THROW((void)place(c, 4), BadInput);
  EXPECT_EQ(local_bits_needed(c), 2);
  EXPECT_EQ(usable_ranks(c, 64), 2);
  EXPECT_EQ(place(c, 2).exchanges(), 0);
}

// -- baselines --

TEST(Placement, MovesAtMostAThirdOfTheBaselinesAndATenthOfSome) {
  const std::map<std::string, Circuit> circuits = {
      {"qft", qft(24)},
      {"qpe", qpe(24)},
      {"tfim 1-d", tfim(24, 24, 10, false)},
      {"tfim 1-d by cx", tfim(24, 24, 10, true)},
      {"tfim 2-d", tfim(24, 6, 10, false)},
      {"tfim 2-d by cx", tfim(24, 6, 10, true)},
      {"random", random_circuit(24, 600, 7)},
  };
  int tenths = 0;
  for (const auto& [name, circuit] : circuits) {
    for (int ranks = 2; ranks <= 64; ranks *= 2) {
      const Placement p = place(circuit, ranks);
      EXPECT_LE(3 * p.fraction_moved(), p.baselines.gate_by_gate) << name << " on " << ranks;
      EXPECT_LE(3 * p.fraction_moved(), p.baselines.one_swap_at_a_time) << name << " on " << ranks;
      if (10 * p.fraction_moved() <= p.baselines.gate_by_gate) ++tenths;
    }
  }
  EXPECT_GE(tenths, 20);
}

TEST(Placement, BaselinesCountWhatTheySay) {
  // Qubits 2 and 3 are bits of the rank's number.
  PlacementOptions in_order;
  in_order.bits = {0, 1, 2, 3};
  const auto baselines = [&](std::vector<Operation> operations) {
    return place(circuit_of(4, std::move(operations)), 4, in_order).baselines;
  };
  EXPECT_EQ(baselines({gate("h", {0}), gate("cz", {2, 3}), gate("cx", {3, 0})}).gate_by_gate, 0);
  EXPECT_EQ(baselines({gate("h", {2})}).gate_by_gate, 1);
  EXPECT_EQ(baselines({gate("h", {2})}).one_swap_at_a_time, 1);
  EXPECT_EQ(baselines({gate("h", {2})}).lazy_swaps, 0.5);
  EXPECT_EQ(baselines({gate("cx", {0, 3})}).gate_by_gate, 0.5);
  EXPECT_EQ(baselines({gate("iswap", {2, 3})}).gate_by_gate, 2);
  EXPECT_EQ(baselines({gate("swap", {1, 3})}).gate_by_gate, 0.5);
  EXPECT_EQ(baselines({gate("swap", {0, 1})}).gate_by_gate, 0);
  EXPECT_EQ(baselines({gate("h", {2}), gate("h", {2})}).lazy_swaps, 0.5);
}

// -- hosts --

// The bytes that rank 0 sends, by level, from the schedules of the exchanges.
std::vector<std::int64_t> bytes_from_schedules(const Placement& p, const std::vector<int>& units) {
  std::vector<std::int64_t> bytes(units.size() + 1, 0);
  for (const Stage& stage : p.stages) {
    if (stage.swaps.empty()) continue;
    PermuteBitsSpec spec{p.qubits, p.local_bits, {}, std::llround(p.bytes_per_amplitude)};
    for (int bit = 0; bit < p.qubits; ++bit) spec.permutation.push_back(bit);
    for (const auto& [local, remote] : stage.swaps) {
      std::swap(spec.permutation[static_cast<std::size_t>(local)], spec.permutation[static_cast<std::size_t>(remote)]);
    }
    for (const PairCount& pair : count(permute_bits(spec)).pairs) {
      if (pair.from != 0) continue;
      std::size_t level = 0;
      while (level < units.size() && pair.to / units[level] != 0) ++level;
      bytes[level] += pair.bytes;
    }
  }
  return bytes;
}

TEST(Placement, CountsBytesByLevelAsTheSchedulesOfItsExchanges) {
  for (const Circuit& circuit : {qft(10), qpe(10), tfim(10, 5, 3, true), random_circuit(10, 80, 4)}) {
    const Placement p = place(circuit, 32, {.ranks_per_host = 4});
    for (const std::vector<int>& units : {std::vector{4}, std::vector{2, 8}, std::vector{1, 4, 16}, std::vector{32}}) {
      const std::vector<std::int64_t> bytes = p.bytes_by_level(units);
      EXPECT_EQ(bytes, bytes_from_schedules(p, units));
      EXPECT_EQ(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}), p.bytes_per_rank());
    }
  }
  EXPECT_THROW((void)place(qft(6), 4).bytes_by_level(std::vector{3}), BadInput);
  EXPECT_THROW((void)place(qft(6), 4).bytes_by_level(std::vector{4, 2}), BadInput);
  EXPECT_THROW((void)place(qft(6), 4, {.ranks_per_host = 3}), BadInput);
}

TEST(Placement, PrefersExchangesInsideHosts) {
  int fewer = 0;
  std::vector<Circuit> circuits{qft(12), qpe(12), tfim(12, 4, 4, true), tfim(12, 3, 4, false)};
  for (unsigned seed = 0; seed < 10; ++seed) circuits.push_back(random_circuit(12, 150, seed));
  for (const Circuit& circuit : circuits) {
    for (const int per_host : {2, 4, 8}) {
      const std::vector<int> units{per_host};
      const Placement plain = place(circuit, 16, {.search_seconds = 0.1});
      const Placement inside = place(circuit, 16, {.search_seconds = 0.1, .ranks_per_host = per_host});
      EXPECT_EQ(inside.bytes_per_rank(), plain.bytes_per_rank());
      EXPECT_LE(inside.bytes_by_level(units)[1], plain.bytes_by_level(units)[1]);
      fewer += inside.bytes_by_level(units)[1] < plain.bytes_by_level(units)[1];
    }
  }
  EXPECT_GT(fewer, 10);
}

}  // namespace
}  // namespace onehop::quantum
