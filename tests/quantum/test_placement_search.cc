// Placement, compared with exhaustive search on small circuits.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <map>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "onehop/quantum/placement.h"
#include "tests/support/placed_circuits.h"

namespace onehop::quantum {
namespace {

using testing::must_be_local;
using testing::random_circuit;

using Matrix = std::vector<Complex>;

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

// The minimum data movement, or number of exchanges: a search over all first placements, all exchanges, and all orders
// of operations that their commutators allow. Commutators are computed from full matrices.
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

  enum class Count : std::uint8_t { data, exchanges };

  [[nodiscard]] double least(Count what = Count::data) const {
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
        const double one = what == Count::data ? 1 - std::pow(2.0, -swaps) : 1;
        if (swaps > 0) reach(cost + one, node.first, set);
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

TEST(Placement, BoundsOfExchangesHoldAndAreMostlyReached) {
  int reached = 0;
  int cases = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    for (int rank_bits = 1; rank_bits <= 3; ++rank_bits) {
      const Placement p = place(random_circuit(5, 24, 3000 + seed), 1 << rank_bits);
      const auto fewest = static_cast<int>(Exhaustive(p, rank_bits).least(Exhaustive::Count::exchanges));
      const int bound = p.exchanges_at_least();
      EXPECT_LE(bound, fewest) << "seed " << seed << ", " << rank_bits << " rank bits";
      EXPECT_GE(p.exchanges(), fewest);
      EXPECT_LE(p.passes_at_least(), p.passes());
      ++cases;
      reached += bound == fewest ? 1 : 0;
    }
  }
  std::printf("the bound is the fewest exchanges in %d of %d circuits\n", reached, cases);
  EXPECT_GE(reached, cases / 2);
}

// Layers of one-qubit gates and CX between all pairs, as in Qiskit's EfficientSU2 with full entanglement.
TEST(Placement, BoundsOfDeepEntangledCircuitsAreReached) {
  for (const int qubits : {8, 12}) {
    Circuit circuit = testing::circuit_of(qubits, {});
    for (int layer = 0; layer < 4; ++layer) {
      for (int q = 0; q < qubits; ++q) circuit.operations.push_back(gate("u", {q}, {0.3 + q, 0.5 * layer, 0.7}));
      if (layer == 3) break;
      for (int q = 0; q < qubits; ++q) {
        for (int r = q + 1; r < qubits; ++r) circuit.operations.push_back(gate("cx", {q, r}));
      }
    }
    for (const int ranks : {2, 8}) {
      const Placement p = place(circuit, ranks);
      EXPECT_EQ(p.exchanges(), qubits == 8 && ranks == 8 ? 5 : 4) << qubits << " qubits on " << ranks << " ranks";
      EXPECT_EQ(p.exchanges_at_least(), p.exchanges()) << qubits << " qubits on " << ranks << " ranks";
    }
  }
}

TEST(Placement, BoundsCountTheLayoutOfAStateThatExists) {
  // A free layout has qubits 0 and 1 on rank bits.
  const Circuit circuit = testing::circuit_of(5, {gate("cx", {0, 2}), gate("cx", {1, 3}), gate("cx", {3, 4})});
  EXPECT_EQ(place(circuit, 4).exchanges_at_least(), 0);
  PlacementOptions given;
  given.bits = {0, 1, 2, 3, 4};
  EXPECT_EQ(place(circuit, 4, given).exchanges_at_least(), 1);
}

}  // namespace
}  // namespace onehop::quantum
