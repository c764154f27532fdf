// Passes over tiles that are smaller than in production, so that a state small enough to check by definition has many.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "quantum/engine/engine_run.h"
#include "src/base/clock.h"
#include "tests/support/local_operations.h"

namespace onehop::quantum {
namespace {

using namespace testing;

// States of so many bits are one tile, of which each thread works on some parts.
constexpr int bits_in_parts = least_bits_in_parts;

// Tiles of random size, all instruction sets of this processor, both precisions, one to four threads.
void expect_on_tiles(Random& random, int bits, const std::vector<LocalOperation>& operations,
                     const std::string& about) {
  const Amplitudes start = random_state(random, bits);
  double most = 1;
  const Amplitudes expected = by_definition(start, operations, most);
  const int tile = number(random, bits == bits_in_parts ? bits : 9, bits);
  const TileSizes sizes{tile, number(random, 4, 6), number(random, 0, 1) == 0};
  const PassList list = make_pass_list(bits, operations, sizes);
  const double each = 1 + static_cast<double>(operations.size());
  for (const std::string& simd : simd_names()) {
    const std::string what = simd + ", " + about;
    auto found = as<double>(start);
    run_passes<double>({found}, operations, list, sizes, kernels_named<double>(simd), number(random, 1, 4));
    ASSERT_LT(distance(expected, found), 1e-14 * each * most) << what;
    auto single = as<float>(start);
    run_passes<float>({single}, operations, list, sizes, kernels_named<float>(simd), number(random, 1, 4));
    ASSERT_LT(distance(expected, single), 1e-6 * each * most) << what;
  }
}

// The fewest passes by definition: every choice of tiles is tried, to `most` passes.
int fewest_passes(const std::vector<Item>& rest, int bits, const TileSizes& sizes, int most) {
  if (rest.empty()) return 0;
  if (most <= 1) return 1;
  int best = most;
  for (std::uint64_t high = 0; high < std::uint64_t{1} << (bits - sizes.low); ++high) {
    if (std::popcount(high) != sizes.tile - sizes.low) continue;
    const std::uint64_t tile = high << sizes.low | ((std::uint64_t{1} << sizes.low) - 1);
    std::vector<Item> left;
    for (const Item& item : rest) {
      const bool waits = std::any_of(left.begin(), left.end(), [&](const Item& other) {
        return (item.mixed & (other.mixed | other.watched)) != 0 || (item.watched & other.mixed) != 0;
      });
      if (waits || (item.mixed & ~tile) != 0) left.push_back(item);
    }
    if (left.size() < rest.size()) best = std::min(best, 1 + fewest_passes(left, bits, sizes, best - 1));
  }
  return best;
}

TEST(QuantumEngineTiles, BoundsOfPassesHoldAndAreMostlyReached) {
  Random random(11);
  int cases = 0;
  int reached = 0;
  for (int round = 0; round < 60; ++round) {
    const int bits = 8;
    const TileSizes sizes{.tile = 6, .low = 4};
    Items items;
    for (int i = 0; i < 24; ++i) {
      Item item{.kind = ItemKind::pair, .mixed = std::uint64_t{1} << number(random, 2, bits - 1)};
      if (round % 2 == 0) item.mixed |= std::uint64_t{1} << number(random, 2, bits - 1);
      item.watched = (std::uint64_t{1} << number(random, 0, bits - 1)) & ~item.mixed;
      items.order.push_back(item);
    }
    const int taken = static_cast<int>(make_passes(items, bits, sizes).size());
    const int fewest = fewest_passes(items.order, bits, sizes, taken);
    const int bound = passes_at_least(items, bits, sizes);
    EXPECT_LE(bound, fewest) << "round " << round;
    EXPECT_LE(fewest, taken) << "round " << round;
    ++cases;
    reached += bound == fewest ? 1 : 0;
  }
  std::printf("the bound is the fewest passes in %d of %d lists of items\n", reached, cases);
  EXPECT_EQ(reached, cases);  // both bits outside a tile count, so that the search is exhaustive
}

TEST(QuantumEngineTiles, AnyCircuit) {
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    const int bits = round % 20 == 0 ? bits_in_parts : number(random, 10, 12);
    std::vector<LocalOperation> operations;
    const int count = number(random, 1, 60);
    for (int i = 0; i < count; ++i) operations.push_back(random_operation(random, bits, 3));
    if (round % 3 == 0) {  // adjacent gates, some of which can merge
      const std::vector<int> order = shuffled(random, bits);
      for (std::size_t k = 0; k + 1 < order.size(); k += 2) {
        operations.push_back(
            {.kind = LocalKind::matrix, .bits = {order[k], order[k + 1]}, .values = random_unitary(random, 4)});
        if (k % 4 == 0) operations.push_back({.kind = LocalKind::swap, .bits = {order[k], order[k + 1]}});
      }
    }
    expect_on_tiles(random, bits, operations, "round " + std::to_string(round));
  }
}

// Rotations with phases between that let none overtake another, as in a QFT: two of them and these phases are a matrix.
TEST(QuantumEngineTiles, ChainsOfRotations) {
  Random random(12);
  for (int round = 0; round < 40; ++round) {
    const int bits = round % 20 == 0 ? bits_in_parts : number(random, 10, 12);
    const std::vector<int> order = shuffled(random, bits);
    std::vector<LocalOperation> operations;
    for (int k = 0; k < bits; ++k) {
      operations.push_back({.kind = LocalKind::matrix, .bits = {order[k]}, .values = random_unitary(random, 2)});
      if (number(random, 0, 3) == 0) {
        operations.push_back({.kind = LocalKind::diagonal, .bits = {order[k]}, .values = {1, -1}});
      }
      for (int later = k + 1; later < bits; ++later) {
        LocalOperation phase{.kind = LocalKind::diagonal, .bits = {order[k], order[later]}, .values = {1, 1, 1, 0}};
        phase.values.back() = std::polar(1.0, 3.0 / (later - k) + round);
        if (later == k + 1 || number(random, 0, 2) != 0) operations.push_back(phase);
      }
    }
    expect_on_tiles(random, bits, operations, "round " + std::to_string(round));
  }
}

// The phases between are of the bit itself, so the gates do not merge before.
TEST(QuantumEngineTiles, TwoRotationsOfOneBit) {
  Random random(13);
  for (int round = 0; round < 20; ++round) {
    const int bits = number(random, 10, 12);
    const std::vector<int> order = shuffled(random, bits);
    const auto rotation = [&] {
      return LocalOperation{.kind = LocalKind::matrix, .bits = {order[0]}, .values = random_unitary(random, 2)};
    };
    LocalOperation phase{.kind = LocalKind::diagonal, .bits = {order[0], order[1]}, .values = {1, {0, 1}, 1, {0, 1}}};
    if (round % 2 != 0) {
      phase = {.kind = LocalKind::pauli_rotation};
      phase.z_mask = std::uint64_t{1} << order[0];
      phase.angle = 0.3 + round;
    }
    expect_on_tiles(random, bits, {rotation(), phase, rotation()}, "round " + std::to_string(round));
  }
}

// Permutation gates merge to one step: in any order, on low and high bits, with controls inside and outside the tile,
// alone and between other gates.
TEST(QuantumEngineTiles, PermutationGates) {
  Random random(8);
  for (int round = 0; round < 60; ++round) {
    const int bits = round % 20 == 0 ? bits_in_parts : number(random, 10, 12);
    std::vector<LocalOperation> operations;
    const int count = number(random, 1, 40);
    for (int i = 0; i < count; ++i) {
      const std::vector<int> order = shuffled(random, bits);
      if (number(random, 0, 3) == 0) {
        operations.push_back({.kind = LocalKind::swap, .bits = {order[0], order[1]}});
        continue;
      }
      if (round % 2 == 0 && number(random, 0, 9) == 0) operations.push_back(random_operation(random, bits, 2));
      LocalOperation flip{.kind = LocalKind::matrix, .bits = {order[0]}, .values = {0, 1, 1, 0}};
      const int controls = number(random, 0, 19) == 0 ? 2 : number(random, 0, 1);
      for (int c = 1; c <= controls; ++c) flip.control_mask |= std::uint64_t{1} << order[static_cast<std::size_t>(c)];
      if (number(random, 0, 2) != 0) flip.control_values = flip.control_mask;
      operations.push_back(flip);
    }
    expect_on_tiles(random, bits, operations, "moves, round " + std::to_string(round));
  }
}

// Every kind of gate, with its bits inside a vector, inside a row, in the row's number and outside the tile.
TEST(QuantumEngineTiles, EveryShapeAtEveryPlace) {
  Random random(9);
  const int bits = 12;
  const std::vector<int> places = {0, 1, 2, 3, 4, 6, 8, 9, 10, 11};
  for (const int a : places) {
    for (const int b : places) {
      if (a == b) continue;
      const std::uint64_t control = std::uint64_t{1} << b;
      const auto any = random_unitary(random, 4);
      const auto one = random_unitary(random, 2);
      const std::vector<LocalOperation> shapes = {
          {.kind = LocalKind::matrix, .bits = {a}, .values = one},
          {.kind = LocalKind::matrix, .bits = {a}, .control_mask = control, .control_values = control, .values = one},
          {.kind = LocalKind::matrix, .bits = {a}, .control_mask = control, .values = {0, 1, 1, 0}},
          {.kind = LocalKind::matrix, .bits = {a, b}, .values = any},
          {.kind = LocalKind::diagonal, .bits = {a, b}, .values = {1, any[0], any[1], any[2]}},
          {.kind = LocalKind::swap, .bits = {a, b}},
          {.kind = LocalKind::pauli_rotation,
           .x_mask = std::uint64_t{1} << a | control,
           .z_mask = control,
           .angle = 0.7},
          {.kind = LocalKind::pauli_rotation, .z_mask = std::uint64_t{1} << a | control, .angle = 0.7},
      };
      expect_on_tiles(random, bits, shapes, "bits " + std::to_string(a) + " and " + std::to_string(b));
      const LocalOperation& shape = shapes[static_cast<std::size_t>(number(random, 0, 7))];
      expect_on_tiles(random, bits, {shape}, "alone, bits " + std::to_string(a) + " and " + std::to_string(b));
    }
  }
}

// Not a test: the measurement behind the values of `Kernels::prefer_dense`.
template <typename T>
void print_matrices_or_parts(const char* what, int bits, const std::vector<LocalOperation>& operations) {
  for (const std::string& simd : simd_names()) {
    std::vector<std::complex<T>> state(std::size_t{1} << bits);
    state[0] = 1;
    double best[2] = {1e300, 1e300};
    for (int round = 0; round < 20; ++round) {
      TileSizes sizes = tile_sizes(bits, sizeof(std::complex<T>));
      sizes.matrices = round % 2 == 0;
      const PassList list = make_pass_list(bits, operations, sizes);
      const double begin = base::steady_seconds();
      run_passes<T>({state}, operations, list, sizes, kernels_named<T>(simd), 1);
      best[round % 2] = std::min(best[round % 2], base::steady_seconds() - begin);
    }
    std::printf("%s, %s, %s: matrices %.1f ms, parts %.1f ms\n", what, sizeof(T) == 8 ? "double" : "single",
                simd.c_str(), 1e3 * best[0], 1e3 * best[1]);
  }
}

TEST(QuantumEngineTiles, DISABLED_MatricesOrParts) {
  Random random(1);
  const int bits = 20;
  std::vector<LocalOperation> pairs;
  std::vector<LocalOperation> neighbours;
  for (int layer = 0; layer < 20; ++layer) {
    const std::vector<int> order = shuffled(random, bits);
    for (std::size_t k = 0; k + 1 < order.size(); k += 2) {
      const int low = static_cast<int>(k) + layer % 2;
      const auto gate = random_unitary(random, 4);
      if (layer < 10) pairs.push_back({.kind = LocalKind::matrix, .bits = {order[k], order[k + 1]}, .values = gate});
      if (low + 1 < bits) {
        neighbours.push_back({.kind = LocalKind::matrix, .bits = {low, low + 1}, .values = gate});
      }
    }
  }
  print_matrices_or_parts<double>("random pairs", bits, pairs);
  print_matrices_or_parts<float>("random pairs", bits, pairs);
  print_matrices_or_parts<double>("neighbours", bits, neighbours);
  print_matrices_or_parts<float>("neighbours", bits, neighbours);
}

}  // namespace
}  // namespace onehop::quantum
