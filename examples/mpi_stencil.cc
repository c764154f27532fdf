// onehop in an MPI program: one plan for the ghost cells, edges and corners of a padded array and of an array of
// structures, on the ranks of a Cartesian communicator. Heat spreads on a torus; a plane wave decays as the formula
// says. docs/tutorials/mpi_program.md explains it. Try: mpiexec -n 4 ./mpi_stencil
#include <mpi.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numbers>
#include <span>
#include <vector>

#include "onehop/count.h"
#include "onehop/mpi.h"
#include "onehop/plan.h"
#include "onehop/verify.h"

namespace {

constexpr std::int64_t rows = 48, columns = 60;  // of each rank, without ghosts
constexpr int steps = 100;
constexpr double pi = std::numbers::pi;

struct Cell {
  float velocity[3];
  std::int32_t kind;  // stays on its rank
};

// How an array lies in memory, in units of its numbers: a line has `pitch` of them, a cell `units`, `sent` of which
// travel.
struct Layout {
  std::int64_t pitch, units, sent;
  [[nodiscard]] std::int64_t at(std::int64_t row, std::int64_t column) const {  // (0, 0) is the first cell inside
    return (row + 1) * pitch + (column + 1) * units;
  }
};
constexpr Layout heat_layout{.pitch = 64, .units = 1, .sent = 1};  // 62 cells, padded to a cache line
constexpr Layout cell_layout{.pitch = 4 * (columns + 2), .units = 4, .sent = 3};

// The cells that a side sends, or the ghosts that it receives. dy and dx say on which side they are: -1, 0 or 1.
onehop::Slice side(const Layout& layout, int dy, int dx, bool ghosts) {
  const auto first = [ghosts](int d, std::int64_t n) { return d == 0 ? 0 : d < 0 ? -ghosts : n - 1 + ghosts; };
  const std::array<std::int64_t, 3> extents{dy == 0 ? rows : 1, dx == 0 ? columns : 1, layout.sent};
  const std::array<std::int64_t, 3> strides{layout.pitch, layout.units, 1};
  return onehop::Slice::box(layout.at(first(dy, rows), first(dx, columns)), extents, strides);
}

// Every rank makes the same schedule. It asks the communicator who the neighbours of each rank are.
onehop::Schedule make_schedule(MPI_Comm cart, int ranks) {
  onehop::Schedule schedule{.name = "stencil", .ranks = ranks, .arrays = {}, .rounds = {}, .must_cover = {}};
  schedule.arrays = {{"heat", 8, onehop::ElementType::float64, {(rows + 2) * heat_layout.pitch}},
                     {"cells", 4, onehop::ElementType::bytes, {(rows + 2) * cell_layout.pitch}}};
  schedule.rounds.resize(1);
  for (int rank = 0; rank < ranks; ++rank)
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) {
        if (dy == 0 && dx == 0) continue;
        std::array<int, 2> where{};
        MPI_Cart_coords(cart, rank, 2, where.data());
        where[0] += dy;
        where[1] += dx;
        int neighbour = 0;
        MPI_Cart_rank(cart, where.data(), &neighbour);  // periodic dimensions wrap round
        for (const auto& [array, layout] : {std::pair(0, heat_layout), std::pair(1, cell_layout)}) {
          const onehop::Slice ghosts = side(layout, -dy, -dx, true);
          schedule.rounds[0].transfers.push_back(
              {.from = {rank, array, side(layout, dy, dx, false)}, .to = {neighbour, array, ghosts}});
          schedule.must_cover.push_back({neighbour, array, ghosts});
        }
      }
  return schedule;
}

// A step of the nine-point stencil on these rows and columns.
void update(const std::vector<double>& old, std::vector<double>& now, std::int64_t row, std::int64_t last_row,
            std::int64_t column, std::int64_t last_column) {
  for (std::int64_t i = row; i < last_row; ++i)
    for (std::int64_t j = column; j < last_column; ++j) {
      const double* here = old.data() + heat_layout.at(i, j);
      const double *up = here - heat_layout.pitch, *down = here + heat_layout.pitch;
      const double beside = up[0] + down[0] + here[-1] + here[1], corners = up[-1] + up[1] + down[-1] + down[1];
      now[static_cast<std::size_t>(heat_layout.at(i, j))] = here[0] + 0.05 * (4 * beside + corners - 20 * here[0]);
    }
}

int run(MPI_Comm cart) {
  const onehop::Group group = onehop::group_from_mpi(cart);  // the same ranks with the same numbers
  std::array<int, 2> grid{}, periods{}, me{};
  MPI_Cart_get(cart, 2, grid.data(), periods.data(), me.data());

  std::vector<double> heat(static_cast<std::size_t>((rows + 2) * heat_layout.pitch)), next = heat;
  std::vector<Cell> cells(static_cast<std::size_t>((rows + 2) * (columns + 2)), {{-1, -1, -1}, group.rank()});
  const double ky = 2 * pi / static_cast<double>(rows * grid[0]), kx = 2 * pi / static_cast<double>(columns * grid[1]);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const double y = static_cast<double>(i + rows * me[0]), x = static_cast<double>(j + columns * me[1]);
      heat[static_cast<std::size_t>(heat_layout.at(i, j))] = std::cos(ky * y) * std::cos(kx * x);
      Cell& cell = cells[static_cast<std::size_t>(cell_layout.at(i, j) / 4)];
      cell.velocity[0] = static_cast<float>(y), cell.velocity[1] = static_cast<float>(x), cell.velocity[2] = 0;
    }

  const onehop::Schedule schedule = make_schedule(cart, group.size());
  onehop::verify_or_throw(schedule);  // every ghost is written, nothing twice
  const std::array arrays{std::as_writable_bytes(std::span(heat)), std::as_writable_bytes(std::span(cells))};
  onehop::Plan plan(group, schedule, arrays);  // collective, once
  double largest = 0;
  for (int step = 0; step < steps; ++step) {
    plan.start();                                     // the ghosts travel ...
    update(heat, next, 1, rows - 1, 1, columns - 1);  // ... while the inside is computed,
    double mine = std::abs(heat[static_cast<std::size_t>(heat_layout.at(0, 0))]);
    MPI_Allreduce(&mine, &largest, 1, MPI_DOUBLE, MPI_MAX, cart);  // and MPI may be called
    plan.finish();                                                 // the ghosts are here
    update(heat, next, 0, 1, 0, columns);
    update(heat, next, rows - 1, rows, 0, columns);
    update(heat, next, 1, rows - 1, 0, 1);
    update(heat, next, 1, rows - 1, columns - 1, columns);
    std::copy(next.begin(), next.end(), heat.begin());  // the plan knows this array; do not swap it away
  }

  const double a = std::cos(ky), b = std::cos(kx), factor = 1 + 0.05 * (8 * (a + b) + 4 * a * b - 20);
  const double expected = std::pow(factor, steps) * std::cos(ky * static_cast<double>(rows * me[0])) *
                          std::cos(kx * static_cast<double>(columns * me[1]));
  double error = std::abs(heat[static_cast<std::size_t>(heat_layout.at(0, 0))] - expected);
  const Cell& corner = cells.front();  // belongs to the neighbour across the corner
  const auto wrapped = static_cast<float>((rows * me[0] + rows * grid[0] - 1) % (rows * grid[0]));
  if (corner.velocity[0] != wrapped || corner.kind != group.rank()) error = 1;
  MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, cart);
  if (group.rank() == 0) {
    const onehop::RankCount sent = onehop::count(schedule).ranks[0];
    std::printf("%d x %d ranks: a rank sends %lld bytes in %lld messages per step\n", grid[0], grid[1],
                static_cast<long long>(sent.bytes_sent), static_cast<long long>(sent.messages_sent));
    std::printf("largest error after %d steps below 1e-12: %s\n", steps, error < 1e-12 ? "yes" : "no");
  }
  return error < 1e-12 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::array<int, 2> grid{}, periodic{1, 1};
  MPI_Dims_create(ranks, 2, grid.data());
  MPI_Comm cart = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 2, grid.data(), periodic.data(), 1, &cart);  // MPI may renumber the ranks
  const int status = run(cart);                                                // plan and group end here, before MPI
  MPI_Comm_free(&cart);
  MPI_Finalize();
  return status;
}
