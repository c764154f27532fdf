// The Poisson solver against its equation, and its solution on every grid of ranks bit by bit.
#include "onehop/poisson/poisson.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "onehop/count.h"
#include "onehop/error.h"
#include "onehop/verify.h"
#include "poisson/poisson_kernels.h"
#include "poisson/poisson_sum.h"
#include "tests/support/ranks.h"

namespace onehop::poisson {
namespace {

using onehop::testing::on_ranks;
using onehop::testing::on_threads;

struct Answer {
  std::vector<double> solution;
  std::vector<PoissonResidual> history;
};

Answer solve(const Group& group, const PoissonSpec& spec, const PoissonOptions& options = {},
             const PoissonControl& control = {}) {
  Poisson poisson(group, spec, options);
  const PoissonResult result = poisson.solve(control);
  return {poisson.gather(poisson.solution()), result.history};
}

Answer solve_alone(PoissonSpec spec, const PoissonControl& control = {}) {
  spec.grid = {1, 1};
  return solve(Group::alone(), spec, {}, control);
}

// Equality of all bits, which also detects a NaN.
void expect_same_numbers(std::span<const double> a, std::span<const double> b, std::string_view what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(std::bit_cast<std::uint64_t>(a[i]), std::bit_cast<std::uint64_t>(b[i])) << what << ", " << i;
}

void expect_same_bits(const Answer& a, const Answer& b) {
  expect_same_numbers(a.solution, b.solution, "site");
  ASSERT_EQ(a.history.size(), b.history.size());
  for (std::size_t i = 0; i < a.history.size(); ++i) {
    EXPECT_EQ(a.history[i].iteration, b.history[i].iteration);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(a.history[i].norm), std::bit_cast<std::uint64_t>(b.history[i].norm))
        << "after iteration " << a.history[i].iteration << ": " << a.history[i].norm << " and " << b.history[i].norm;
  }
}

double norm_of_residual(const PoissonSpec& spec, const std::vector<double>& x, const std::vector<double>& b) {
  long double sum = 0;
  const auto [rows, columns] = spec.extents;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto at = [&](std::int64_t p, std::int64_t q) -> long double {
        return x[static_cast<std::size_t>((p + rows) % rows * columns + (q + columns) % columns)];
      };
      const long double r = b[static_cast<std::size_t>(i * columns + j)] - (4 + spec.mass * spec.mass) * at(i, j) +
                            at(i + 1, j) + at(i - 1, j) + at(i, j + 1) + at(i, j - 1);
      sum += r * r;
    }
  }
  return static_cast<double>(std::sqrt(sum));
}

TEST(Poisson, ResidualsAreThoseOfTheIterates) {
  PoissonSpec spec{.extents = {37, 29}, .mass = 0.2, .seed = 3};
  const auto b = poisson_source(spec, poisson_block(spec, 0));
  for (const std::int64_t iterations : {0, 1, 10, 20, 133}) {
    const Answer answer = solve_alone(spec, {.iterations = iterations});
    const double expected = norm_of_residual(spec, answer.solution, b);
    ASSERT_EQ(answer.history.back().iteration, iterations);
    EXPECT_NEAR(answer.history.back().norm / expected, 1, 1e-11) << iterations;
    EXPECT_NEAR(answer.history.front().norm / norm_of_residual(spec, std::vector<double>(b.size()), b), 1, 1e-11);
  }
}

class PoissonGrids : public ::testing::TestWithParam<std::array<int, 2>> {};

TEST_P(PoissonGrids, SameBitsAsOneRank) {
  const std::array<int, 2> grid = GetParam();
  const int ranks = grid[0] * grid[1];
  for (const std::array<std::int64_t, 2> extents : {std::array<std::int64_t, 2>{60, 60}, {23, 31}, {8, 8}}) {
    PoissonSpec spec{.extents = extents, .mass = 0.3, .seed = 11};
    const PoissonControl control{.iterations = 95, .residual_every = extents[0] == 8 ? 1 : 10};
    const Answer expected = solve_alone(spec, control);
    spec.grid = grid;
    on_ranks(ranks, [&](const Group& group) { expect_same_bits(solve(group, spec, {}, control), expected); });
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, PoissonGrids,
                         ::testing::Values(std::array{1, 1}, std::array{2, 1}, std::array{1, 2}, std::array{3, 1},
                                           std::array{1, 3}, std::array{4, 1}, std::array{2, 2}, std::array{3, 2},
                                           std::array{1, 6}, std::array{8, 1}, std::array{2, 4}),
                         [](const auto& instance) {
                           return std::to_string(instance.param[0]) + "x" + std::to_string(instance.param[1]);
                         });

TEST(Poisson, SameBitsWhenOneRankConverges) {
  // Until only rounding errors are left, and beyond.
  PoissonSpec spec{.extents = {20, 20}, .mass = 1.5};
  const Answer expected = solve_alone(spec);
  EXPECT_LT(expected.history.back().norm, 1e-14);
  spec.grid = {2, 2};
  on_threads(4, [&](const Group& group) { expect_same_bits(solve(group, spec), expected); });
}

TEST(Poisson, BuffersAndEnlargementChangeNothing) {
  PoissonSpec spec{.extents = {24, 20}};
  const Answer expected = solve_alone(spec, {.iterations = 50});
  spec.grid = {2, 2};
  for (const int buffers : {1, 2, 3}) {
    for (const std::int64_t enlargement : {1, 16, 1024}) {
      on_ranks(4, [&](const Group& group) {
        expect_same_bits(solve(group, spec, {.buffers = buffers, .enlargement = enlargement}, {.iterations = 50}),
                         expected);
      });
    }
  }
}

TEST(Poisson, TakesAnotherSource) {
  PoissonSpec spec{.extents = {6, 5}, .mass = 1};
  std::vector<double> b(30);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = 1e6 * std::sin(static_cast<double>(i));
  spec.grid = {3, 1};
  on_ranks(3, [&](const Group& group) {
    Poisson poisson(group, spec);
    const auto first = b.begin() + poisson.block().start[0] * 5;
    poisson.set_source(std::vector<double>(first, first + 10));
    (void)poisson.solve();
    EXPECT_LT(norm_of_residual(spec, poisson.gather(poisson.solution()), b), 1e-7);
    // An error on one rank throws on all.
    const std::vector<double> wrong(group.rank() == 1 ? 9 : 10);
    EXPECT_THROW(poisson.set_source(wrong), BadInput);
    EXPECT_THROW(poisson.set_source(std::vector<double>(10, group.rank() == 2 ? NAN : 0.0)), BadInput);
    poisson.set_source(std::vector<double>(10, 0.0));
    EXPECT_EQ(poisson.solve({.iterations = 20}).history.back().norm, 0);
  });
}

TEST(Poisson, AnotherExchangeIsUsed) {
  struct Copies : PoissonExchange {
    std::span<std::byte> own, neighbours;
    int started = 0;
    int sums_with_faces = 0;
    double sum = 0;
    void start() override { ++started; }
    void start_with_sum(double mine) override {
      ++sums_with_faces;
      PoissonExchange::start_with_sum(mine);
    }
    // One rank is its own neighbour, so its lower face is its upper neighbour face.
    void finish() override {
      const std::size_t face = own.size() / 4;
      for (std::size_t f = 0; f < 4; ++f) std::copy_n(own.data() + f * face, face, neighbours.data() + (f ^ 1) * face);
    }
    void start_sum(double mine) override { sum = mine; }
    double finish_sum() override { return sum; }
  };
  Copies* used = nullptr;
  const PoissonSpec spec{.extents = {16, 16}};
  PoissonOptions options{.enlargement = 3};
  options.exchange = [&](const Schedule& faces, std::span<const std::span<std::byte>> arrays) {
    EXPECT_EQ(faces.arrays[0].elements, poisson_faces(spec, 3).arrays[0].elements);
    auto made = std::make_unique<Copies>();
    made->own = arrays[0];
    made->neighbours = arrays[1];
    used = made.get();
    return made;
  };
  Poisson poisson(Group::alone(), spec, options);
  const PoissonResult result = poisson.solve({.iterations = 40});
  EXPECT_EQ(used->started, 41);
  EXPECT_EQ(used->sums_with_faces, 4);
  expect_same_bits({poisson.solution(), result.history}, solve_alone(spec, {.iterations = 40}));
}

TEST(Poisson, FacesAreOneScheduleThatVerifies) {
  for (const std::array<int, 2> grid : {std::array{1, 1}, {2, 1}, {2, 3}, {4, 4}}) {
    const PoissonSpec spec{.extents = {13, 22}, .grid = grid};
    for (const std::int64_t enlargement : {1, 7}) {
      const Schedule faces = poisson_faces(spec, enlargement);
      EXPECT_TRUE(verify(faces).empty());
      // Every cut of the lattice crosses it twice per boundary: cuts of rows have all 22 columns, and so on.
      const std::int64_t rows = grid[0] > 1 ? 2 * grid[0] * 22 : 0;
      const std::int64_t columns = grid[1] > 1 ? 2 * grid[1] * 13 : 0;
      EXPECT_EQ(count(faces).bytes, (rows + columns) * 8 * enlargement);
    }
  }
}

TEST(Poisson, SaysWhatIsWrong) {
  EXPECT_THROW((void)poisson_block({.extents = {4, 4}, .grid = {5, 1}}, 0), BadInput);
  EXPECT_THROW((void)poisson_block({.extents = {4, 4}, .grid = {2, 2}}, 4), BadInput);
  EXPECT_THROW((void)poisson_block({.mass = 0}, 0), BadInput);
  EXPECT_THROW((void)poisson_block({.mass = NAN}, 0), BadInput);
  EXPECT_THROW((void)poisson_faces({}, 0), BadInput);
  EXPECT_THROW((void)poisson_faces({}, std::int64_t{1} << 62), BadInput);
  EXPECT_THROW(Poisson(Group::alone(), {.grid = {2, 1}}), BadInput);
  EXPECT_THROW(Poisson(Group::alone(), {}, {.buffers = 0}), BadInput);
  EXPECT_THROW((void)poisson_grid({2, 2}, 3), BadInput);
  EXPECT_EQ(poisson_grid({120, 60}, 2), (std::array{2, 1}));
  EXPECT_EQ(poisson_grid({60, 120}, 2), (std::array{1, 2}));
  EXPECT_EQ(poisson_grid({120, 120}, 4), (std::array{4, 1}));
  EXPECT_EQ(poisson_grid({1, 100}, 4), (std::array{1, 4}));
}

// Random numbers of a block, and of its faces.
struct KernelInput {
  KernelInput(std::array<std::int64_t, 2> sizes, unsigned seed)
      : extents(sizes),
        stride((sizes[1] + 7) / 8 * 8),
        x(static_cast<std::size_t>(stride * sizes[0])),
        b(x.size()),
        faces(4 * 64) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(-3, 3);
    for (auto* values : {&x, &b, &faces}) {
      for (double& value : *values) value = uniform(random);
    }
  }

  // The residual, if it is wanted, the new block, and the four faces, of which wrapping leaves out those of columns.
  [[nodiscard]] std::vector<double> results(const detail::PoissonKernels& kernels, bool residual, bool wraps) const {
    std::vector<double> y(x.size()), out(faces.size());
    detail::PoissonEdges edges;
    for (std::size_t f = 0; f < 4; ++f) {
      edges.in[f] = wraps && f >= 2 ? nullptr : faces.data() + 64 * f;
      edges.out[f] = wraps && f >= 2 ? nullptr : out.data() + 64 * f;
    }
    detail::PoissonUpdate update{x.data(), b.data(), y.data(), stride, extents, 4.25, 1 / 4.25};
    update.wraps = wraps;
    update.rounder = 1.5 * 0x1p22;
    std::vector<double> result;
    if (residual) {
      const double interior = kernels.interior_residual(update);
      result.push_back(interior + kernels.boundary_residual(update, edges));
    } else {
      kernels.interior(update);
      kernels.boundary(update, edges);
    }
    for (std::int64_t i = 0; i < extents[0]; ++i)
      result.insert(result.end(), y.begin() + i * stride, y.begin() + i * stride + extents[1]);
    result.insert(result.end(), out.begin(), out.end());
    return result;
  }

  std::array<std::int64_t, 2> extents;
  std::int64_t stride;
  std::vector<double> x, b, faces;
};

TEST(PoissonKernels, AllProcessorsGiveTheSameBits) {
  using Extents = std::array<std::int64_t, 2>;
  for (const Extents extents :
       {Extents{60, 60}, {1, 1}, {1, 9}, {9, 1}, {2, 17}, {5, 8}, {3, 33}, {4, 64}, {6, 20}, {7, 16}, {8, 2}}) {
    const KernelInput input(extents, 7);
    const auto all = detail::poisson_kernels();
    for (const bool residual : {false, true}) {
      const auto expected = input.results(all[0], residual, false);
      if (residual) {
        EXPECT_GT(expected[0], 0);
      }
      for (const auto& kernels : all)
        expect_same_numbers(input.results(kernels, residual, false), expected, kernels.name);
    }
  }
}

// Rows that wrap around give what columns that come as faces give: the block's own last and first ones.
TEST(PoissonKernels, RowsThatWrapAroundAreTheirOwnNeighbours) {
  for (const std::int64_t rows : {1, 2, 3, 4, 7, 8, 60}) {
    for (const std::int64_t columns : {1, 2, 7, 8, 9, 15, 16, 17, 60, 64}) {
      KernelInput input({rows, columns}, 11);
      for (std::int64_t i = 0; i < rows; ++i) {
        input.faces[static_cast<std::size_t>(2 * 64 + i)] =
            input.x[static_cast<std::size_t>(i * input.stride + columns - 1)];
        input.faces[static_cast<std::size_t>(3 * 64 + i)] = input.x[static_cast<std::size_t>(i * input.stride)];
      }
      for (const auto& kernels : detail::poisson_kernels()) {
        for (const bool residual : {false, true}) {
          std::array<std::vector<double>, 2> results;
          for (const bool wraps : {false, true}) {
            auto& found = results[wraps ? 1 : 0] = input.results(kernels, residual, wraps);
            found.resize(found.size() - 2 * 64);  // without the faces of columns
          }
          expect_same_numbers(
              results[0], results[1],
              std::string(kernels.name) + ", " + std::to_string(rows) + " x " + std::to_string(columns));
        }
      }
    }
  }
}

TEST(PoissonSum, AnyOrderGivesTheSameBits) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const detail::SumScale scale(4096, 1, 0.5);
  const double rounder = scale.rounder(0);
  std::vector<double> squares;
  long double exact = 0;
  for (int i = 0; i < 4096; ++i) {
    const double r = uniform(random);
    exact += static_cast<long double>(r) * r;
    squares.push_back((r * r + rounder) - rounder);
  }
  double forward = 0;
  for (const double square : squares) forward += square;
  EXPECT_NEAR(forward, static_cast<double>(exact), 1e-10);
  for (int trial = 0; trial < 20; ++trial) {
    std::shuffle(squares.begin(), squares.end(), random);
    double parts[3] = {};
    for (std::size_t i = 0; i < squares.size(); ++i) parts[i * i % 3] += squares[i];
    EXPECT_EQ(parts[0] + parts[1] + parts[2], forward);
  }
}

}  // namespace
}  // namespace onehop::poisson
