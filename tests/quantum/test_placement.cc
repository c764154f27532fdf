// Placement: the invariants of any placement, comparison with exhaustive search on small circuits, and with baselines.
#include "onehop/quantum/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <queue>
#include <random>
#include <set>
#include <string>

#include "onehop/count.h"
#include "onehop/error.h"
#include "onehop/patterns.h"

namespace onehop::quantum {
namespace {

using Matrix = std::vector<Complex>;

Circuit circuit_of(int qubits, std::vector<Operation> operations) {
  Circuit circuit;
  circuit.qubits = qubits;
  circuit.operations = std::move(operations);
  return circuit;
}

Circuit qft(int n) {
  Circuit c = circuit_of(n, {});
  for (int i = n - 1; i >= 0; --i) {
    c.operations.push_back(gate("h", {i}));
    for (int j = i - 1; j >= 0; --j) c.operations.push_back(gate("cp", {j, i}, {std::numbers::pi / (1 << (i - j))}));
  }
  for (int i = 0; i < n / 2; ++i) c.operations.push_back(gate("swap", {i, n - 1 - i}));
  return c;
}

Circuit qpe(int n) {
  const int counting = n - 1;
  Circuit c = circuit_of(n, {gate("x", {counting})});
  for (int i = 0; i < counting; ++i) c.operations.push_back(gate("h", {i}));
  for (int i = 0; i < counting; ++i) c.operations.push_back(gate("cp", {i, counting}, {0.1 * (1 << i)}));
  for (int i = 0; i < counting / 2; ++i) c.operations.push_back(gate("swap", {i, counting - 1 - i}));
  for (int i = 0; i < counting; ++i) {
    for (int j = 0; j < i; ++j) c.operations.push_back(gate("cp", {j, i}, {-std::numbers::pi / (1 << (i - j))}));
    c.operations.push_back(gate("h", {i}));
  }
  return c;
}

// Time evolution of the transverse-field Ising model on a grid of this width, with RZZ as such or as CX, RZ, CX.
Circuit tfim(int n, int width, int steps, bool by_cx) {
  Circuit c = circuit_of(n, {});
  const auto bond = [&](int i, int j) {
    if (!by_cx) return c.operations.push_back(gate("rzz", {i, j}, {0.1}));
    c.operations.push_back(gate("cx", {i, j}));
    c.operations.push_back(gate("rz", {j}, {0.1}));
    c.operations.push_back(gate("cx", {i, j}));
  };
  for (int s = 0; s < steps; ++s) {
    for (int i = 0; i < n; ++i) {
      if (i % width + 1 < width && i + 1 < n) bond(i, i + 1);
      if (i + width < n) bond(i, i + width);
    }
    for (int i = 0; i < n; ++i) c.operations.push_back(gate("rx", {i}, {0.2}));
  }
  return c;
}

Circuit random_circuit(int n, int gates, unsigned seed) {
  std::mt19937 random(seed);
  Circuit c = circuit_of(n, {});
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  for (int g = 0; g < gates; ++g) {
    const int a = below(n);
    const int b = (a + 1 + below(n - 1)) % n;
    switch (below(7)) {
      case 0:
        c.operations.push_back(gate("u", {a}, {0.3, 0.2, 0.1}));
        break;
      case 1:
        c.operations.push_back(gate("rx", {a}, {0.3}));
        break;
      case 2:
        c.operations.push_back(gate("cz", {a, b}));
        break;
      case 3:
        c.operations.push_back(gate("swap", {a, b}));
        break;
      case 4:
        c.operations.push_back(gate("iswap", {a, b}));
        break;
      case 5:
        c.operations.push_back(gate("rxx", {a, b}, {0.4}));
        break;
      default:
        c.operations.push_back(gate("cx", {a, b}));
        break;
    }
  }
  return c;
}

// -- invariants of any placement --

// The targets on which the gate is not diagonal, from the elements of its matrix.
std::set<int> must_be_local(const Operation& operation) {
  std::set<int> wires;
  if (operation.kind == OperationKind::diagonal || operation.kind == OperationKind::global_phase) return wires;
  const Matrix m = matrix_of(operation);
  const std::size_t size = std::size_t{1} << operation.targets.size();
  const bool flips = size == 2 && operation.controls.empty() && std::abs(m[0]) < 1e-15 && std::abs(m[3]) < 1e-15;
  for (std::size_t r = 0; r < size && !flips; ++r) {
    for (std::size_t c = 0; c < size; ++c) {
      if (std::abs(m[r * size + c]) < 1e-15) continue;
      for (std::size_t t = 0; t < operation.targets.size(); ++t) {
        if (((r ^ c) >> t & 1U) != 0) wires.insert(operation.targets[t]);
      }
    }
  }
  return wires;
}

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

// -- exhaustive search --

// The operation on all qubits, as a dense matrix.
Matrix on_all(const Operation& operation, int n) {
  const Matrix m = matrix_of(operation);
  const std::size_t size = std::size_t{1} << operation.targets.size();
  const std::size_t all = std::size_t{1} << n;
  Matrix whole(all * all);
  for (std::size_t column = 0; column < all; ++column) {
    bool fits = true;
    for (std::size_t i = 0; i < operation.controls.size(); ++i) {
      fits = fits && (column >> operation.controls[i] & 1U) == (operation.control_values >> i & 1U);
    }
    if (!fits) {
      whole[column * all + column] = 1;
      continue;
    }
    std::size_t c = 0;
    std::size_t rest = column;
    for (std::size_t t = 0; t < operation.targets.size(); ++t) {
      c |= (column >> operation.targets[t] & 1U) << t;
      rest &= ~(std::size_t{1} << operation.targets[t]);
    }
    for (std::size_t r = 0; r < size; ++r) {
      std::size_t row = rest;
      for (std::size_t t = 0; t < operation.targets.size(); ++t) row |= (r >> t & 1U) << operation.targets[t];
      whole[row * all + column] = m[r * size + c];
    }
  }
  return whole;
}

std::vector<Complex> times(const Matrix& m, const std::vector<Complex>& v) {
  std::vector<Complex> result(v.size());
  for (std::size_t r = 0; r < v.size(); ++r) {
    for (std::size_t c = 0; c < v.size(); ++c) result[r] += m[r * v.size() + c] * v[c];
  }
  return result;
}

// Compares both products on a vector without symmetries, on which matrices that do not commute differ.
bool commute(const Matrix& a, const Matrix& b, std::size_t size) {
  std::mt19937 random(1);
  std::vector<Complex> v(size);
  for (Complex& x : v) x = {std::generate_canonical<double, 53>(random), std::generate_canonical<double, 53>(random)};
  const auto one = times(a, times(b, v));
  const auto other = times(b, times(a, v));
  for (std::size_t i = 0; i < size; ++i) {
    if (std::abs(one[i] - other[i]) > 1e-12) return false;
  }
  return true;
}

// The minimum data movement: a search over all first placements, all exchanges, and all orders of operations that their
// commutators allow. Commutators are computed from full matrices.
class Exhaustive {
 public:
  Exhaustive(const Placement& p, int rank_bits) : n_(p.qubits), rank_bits_(rank_bits) {
    std::vector<Operation> operations;
    for (const Stage& stage : p.stages) {
      for (const int index : stage.operations) indices_.push_back(index);
    }
    std::sort(indices_.begin(), indices_.end());
    std::vector<Matrix> matrices;
    for (const int index : indices_) {
      const Operation& operation = p.operations[static_cast<std::size_t>(index)];
      unsigned local = 0;
      for (const int wire : must_be_local(operation)) local |= 1U << wire;
      local_.push_back(local);
      matrices.push_back(on_all(operation, n_));
      unsigned before = 0;
      for (std::size_t i = 0; i + 1 < matrices.size(); ++i) {
        if (!commute(matrices[i], matrices.back(), std::size_t{1} << n_)) before |= 1U << i;
      }
      before_.push_back(before);
    }
  }

  [[nodiscard]] double least() const {
    using Node = std::pair<unsigned, unsigned>;  // done, remote wires
    std::map<Node, double> best;
    std::priority_queue<std::pair<double, Node>, std::vector<std::pair<double, Node>>, std::greater<>> open;
    const unsigned all = (1U << indices_.size()) - 1;
    std::vector<unsigned> sets;
    for (unsigned set = 0; set < 1U << n_; ++set) {
      if (std::popcount(set) == rank_bits_) sets.push_back(set);
    }
    const auto reach = [&](double cost, unsigned done, unsigned remote) {
      const Node node{run(done, remote), remote};
      const auto found = best.find(node);
      if (found != best.end() && found->second <= cost) return;
      best[node] = cost;
      open.push({cost, node});
    };
    for (const unsigned set : sets) reach(0, 0, set);
    while (!open.empty()) {
      const auto [cost, node] = open.top();
      open.pop();
      if (node.first == all) return cost;
      if (best.at(node) < cost) continue;
      for (const unsigned set : sets) {
        const int swaps = std::popcount(set & ~node.second);
        if (swaps > 0) reach(cost + 1 - std::pow(2.0, -swaps), node.first, set);
      }
    }
    return 0;
  }

 private:
  [[nodiscard]] unsigned run(unsigned done, unsigned remote) const {
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < indices_.size(); ++i) {
        if ((done >> i & 1U) != 0 || (before_[i] & ~done) != 0 || (local_[i] & remote) != 0) continue;
        done |= 1U << i;
        more = true;
      }
    }
    return done;
  }

  int n_;
  int rank_bits_;
  std::vector<int> indices_;
  std::vector<unsigned> local_;
  std::vector<unsigned> before_;
};

// docs/design/placement.md quotes the figures that this prints.
TEST(Placement, IsNearTheBestOfExhaustiveSearch) {
  double ours = 0;
  double by_heuristic = 0;
  double least = 0;
  int equal = 0;
  int cases = 0;
  double worst = 1;
  for (unsigned seed = 0; seed < 60; ++seed) {
    for (int rank_bits = 1; rank_bits <= 3; ++rank_bits) {
      const Circuit circuit = random_circuit(5, 24, 1000 + seed);
      PlacementOptions heuristic;
      heuristic.search_seconds = 0;
      const Placement p = place(circuit, 1 << rank_bits);
      const double best = Exhaustive(p, rank_bits).least();
      EXPECT_GE(p.fraction_moved(), best - 1e-12);
      ours += p.fraction_moved();
      by_heuristic += place(circuit, 1 << rank_bits, heuristic).fraction_moved();
      least += best;
      ++cases;
      if (p.fraction_moved() <= best + 1e-12) ++equal;
      if (best > 0) worst = std::max(worst, p.fraction_moved() / best);
    }
  }
  std::printf(
      "%d circuits: exhaustive search moves %.2f, the placement %.2f, its heuristic alone %.2f; equal in %d, at worst "
      "%.2f "
      "times\n",
      cases, least, ours, by_heuristic, equal, worst);
  EXPECT_LE(ours, 1.12 * least);
  EXPECT_GE(equal, cases * 6 / 10);
  EXPECT_LE(ours, by_heuristic);
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
    PermuteBitsSpec spec{p.qubits, p.local_bits, {}, p.bytes_per_amplitude};
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
