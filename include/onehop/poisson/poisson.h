// The two-dimensional Poisson equation on a periodic lattice that is split over a grid of ranks:
//
//   (4 + mass^2) x(i,j) - x(i+1,j) - x(i-1,j) - x(i,j+1) - x(i,j-1) = b(i,j)
//
// solved by Jacobi's method from x = 0. Each iteration sends the four faces of a rank's block, updates the interior
// while they travel, then updates the boundary. The solution and the residual norms are bitwise the same for every
// grid of ranks and every processor (docs/reference/poisson.md explains how).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "onehop/channel.h"
#include "onehop/group.h"
#include "onehop/schedule.h"

namespace onehop::poisson {

// The problem and its distribution. All fields but `grid` change the solution.
struct PoissonSpec {
  std::array<std::int64_t, 2> extents{60, 60};  // sites of the whole lattice
  std::array<int, 2> grid{1, 1};                // ranks per dimension; neither may exceed the extent
  double mass = 0.5;                            // must be positive, else the operator is singular
  std::uint64_t seed = 1;                       // seed of the right-hand side, see poisson_source
};

// One rank's block: its first site and its sites per dimension. The first (extent mod grid) blocks have one site more.
struct PoissonBlock {
  std::array<std::int64_t, 2> start{};
  std::array<std::int64_t, 2> extents{};
};

// Returns the grid of `ranks` ranks with the shortest faces for a lattice of `extents`. Among equals it prefers to cut
// the first dimension, whose faces are contiguous. Throws BadInput if no grid fits.
[[nodiscard]] std::array<int, 2> poisson_grid(std::array<std::int64_t, 2> extents, int ranks);

// Throws BadInput if `spec` is invalid or has no such rank.
[[nodiscard]] PoissonBlock poisson_block(const PoissonSpec& spec, int rank);

// Returns the right-hand side of a block in C order: numbers in [-1, 1) that depend only on seed and global site.
[[nodiscard]] std::vector<double> poisson_source(const PoissonSpec& spec, const PoissonBlock& block);

// Returns the schedule of one iteration. Array 0 holds a rank's own faces, array 1 those of its neighbours, both in the
// order: dimension 0 below, above, dimension 1 below, above. Padding extends every face to `enlargement` times its
// length and is sent with it to other ranks. Throws BadInput.
[[nodiscard]] Schedule poisson_faces(const PoissonSpec& spec, std::int64_t enlargement = 1);

// Exchanges faces and sums residuals. The solver has its own implementation, with plans; a benchmark may supply
// another.
class PoissonExchange {
 public:
  virtual ~PoissonExchange() = default;
  // start() sends this rank's faces, finish() waits for the neighbours'. Neither array is accessed in between.
  virtual void start() = 0;
  virtual void finish() = 0;
  // The sum of `mine` over all ranks. The values are rounded so that every order of summation gives the same bits.
  virtual void start_sum(double mine) = 0;
  [[nodiscard]] virtual double finish_sum() = 0;
  // Both at once: the solver sends the sum of an iteration with the faces of the next one. An exchange that can put
  // them into the same messages does.
  virtual void start_with_sum(double mine) {
    start_sum(mine);
    start();
  }
  [[nodiscard]] virtual double finish_with_sum() {
    finish();
    return finish_sum();
  }
};

// Makes a PoissonExchange for `faces` (enlarged) and the memory of its two arrays, which stays valid. Collective.
using MakePoissonExchange = std::function<std::unique_ptr<PoissonExchange>(
    const Schedule& faces, std::span<const std::span<std::byte>> arrays)>;

struct PoissonOptions {
  int buffers = 2;               // slots per neighbour: 1 is single buffering, 2 double buffering
  std::int64_t enlargement = 1;  // length of a message as a multiple of the length of its face
  TransportKind transport = TransportKind::automatic;
  MakePoissonExchange exchange{};  // replaces the solver's exchange; then there are no buffers and no transport
};

// The residual |b - M x| after `iteration` iterations.
struct PoissonResidual {
  std::int64_t iteration = 0;
  double norm = 0;
};

// One rank's time in seconds per iteration: the means over the iterations in which each part was measured.
struct PoissonTimes {
  double start = 0;     // packing and sending the faces
  double interior = 0;  // updating the interior while the faces travel
  double wait = 0;      // waiting for the neighbours' faces and unpacking them
  double boundary = 0;
  double residual = 0;  // summing over the ranks; the local arithmetic is part of interior and boundary
};

struct PoissonResult {
  std::int64_t iterations = 0;
  bool reached_tolerance = false;
  double seconds = 0;                    // wall time of all iterations
  std::vector<PoissonResidual> history;  // in the order of iterations; the last entry belongs to the solution
  PoissonTimes times;
};

struct PoissonControl {
  std::int64_t iterations = 1000;    // upper limit
  std::int64_t residual_every = 10;  // iterations from one residual to the next
  double tolerance = 0;              // stop when |b - M x| <= tolerance * |b|, checked with every residual
  // Called on every rank after a new residual, at most about ten times a second. May throw to stop the solve.
  std::function<void(const PoissonResidual&)> progress{};
};

class Poisson {
 public:
  // Collective. Throws BadInput if `spec` is invalid or its grid does not have the group's number of ranks.
  explicit Poisson(const Group& group, const PoissonSpec& spec, const PoissonOptions& options = {});
  Poisson(Poisson&&) noexcept;
  Poisson& operator=(Poisson&&) noexcept;
  ~Poisson();

  // Replaces the right-hand side by this rank's block in C order. Collective. Throws BadInput for a wrong length, and
  // for values that are not finite or exceed 1e140 in magnitude.
  void set_source(std::span<const double> block);

  // Solves from x = 0. Collective, with the same `control` on every rank. Throws PeerLost, Timeout.
  PoissonResult solve(const PoissonControl& control = {});

  // Returns this rank's block of the solution or of the right-hand side, in C order.
  [[nodiscard]] std::vector<double> solution() const;
  [[nodiscard]] std::vector<double> source() const;
  // Joins the blocks of all ranks: returns the whole lattice in C order on every rank. Collective.
  [[nodiscard]] std::vector<double> gather(std::span<const double> block) const;

  [[nodiscard]] const PoissonSpec& spec() const noexcept;
  [[nodiscard]] const PoissonBlock& block() const noexcept;
  // Bytes that this rank sends to others in one iteration, padding included.
  [[nodiscard]] std::int64_t bytes_sent() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::poisson
