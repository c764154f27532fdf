// The two-dimensional Poisson equation on a periodic lattice that is split over a grid of ranks:
//
//   (4 + mass^2) x(i,j) - x(i+1,j) - x(i-1,j) - x(i,j+1) - x(i,j-1) = b(i,j)
//
// solved by Jacobi's method from x = 0. Each iteration sends the four faces of a rank's block, updates the interior while
// they travel, and the boundary when they are there. The solution and the residual norms are bitwise the same for every
// grid of ranks and every processor (docs/reference/poisson.md says how).
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

namespace onehop::lattice {

// The problem. Everything but `grid` changes the answer; `grid` does not.
struct PoissonSpec {
  std::array<std::int64_t, 2> extents{60, 60};  // of the whole lattice
  std::array<int, 2> grid{1, 1};                // ranks per dimension; neither may exceed the extent
  double mass = 0.5;                            // above 0: without it the operator has no inverse
  std::uint64_t seed = 1;                       // of the right-hand side, see poisson_source
};

// One rank's block: its first site and its sites per dimension. The first (extent mod grid) blocks have one more.
struct PoissonBlock {
  std::array<std::int64_t, 2> start{};
  std::array<std::int64_t, 2> extents{};
};

// The grid of `ranks` ranks that cuts a lattice of `extents` with the shortest faces; among equals the one that cuts the
// first dimension, whose faces are contiguous. Throws BadInput if no grid fits.
[[nodiscard]] std::array<int, 2> poisson_grid(std::array<std::int64_t, 2> extents, int ranks);

// Throws BadInput if `spec` is not one, or has no such rank.
[[nodiscard]] PoissonBlock poisson_block(const PoissonSpec& spec, int rank);

// The right-hand side of a block, in C order: numbers in [-1, 1) that depend on the seed and the global site alone.
[[nodiscard]] std::vector<double> poisson_source(const PoissonSpec& spec, const PoissonBlock& block);

// What one iteration sends. Array 0 holds a rank's own faces, array 1 those of its neighbours, each as below and above in
// dimension 0, below and above in dimension 1. Every face is followed by padding to `enlargement` times its length, which
// travels with it to another rank. Throws BadInput.
[[nodiscard]] Schedule poisson_faces(const PoissonSpec& spec, std::int64_t enlargement = 1);

// How faces travel and residuals are added up. The solver brings its own, made of two plans; a benchmark may bring another.
class PoissonExchange {
 public:
  virtual ~PoissonExchange() = default;
  // start() sends the own faces, finish() waits for the neighbours'. Between the two neither array is touched.
  virtual void start() = 0;
  virtual void finish() = 0;
  // The sum of all ranks' values, between the two calls on its way. The values are such that every order gives the same.
  virtual void start_sum(double mine) = 0;
  [[nodiscard]] virtual double finish_sum() = 0;
};

// Makes one for `faces` (enlargement 1) and the memory of its two arrays, which stays where it is. Collective.
using MakePoissonExchange = std::function<std::unique_ptr<PoissonExchange>(
    const Schedule& faces, std::span<const std::span<std::byte>> arrays)>;

struct PoissonOptions {
  int buffers = 2;               // slots per neighbour: 1 is single, 2 double buffering
  std::int64_t enlargement = 1;  // messages are so many times as long as the faces in them
  TransportKind transport = TransportKind::automatic;
  MakePoissonExchange exchange{};  // instead of the solver's own; then the three above are without effect
};

// |b - M x| after so many iterations.
struct PoissonResidual {
  std::int64_t iteration = 0;
  double norm = 0;
};

// Where one rank's time goes, in seconds per iteration: the means of the iterations in which the parts were looked at.
struct PoissonTimes {
  double start = 0;     // packing and sending
  double interior = 0;  // while the faces fly
  double wait = 0;      // for them, and unpacking
  double boundary = 0;
  double residual = 0;  // the sum over the ranks; its arithmetic is part of interior and boundary
};

struct PoissonResult {
  std::int64_t iterations = 0;
  bool reached_tolerance = false;
  double seconds = 0;                    // for all iterations
  std::vector<PoissonResidual> history;  // ascending; the last is that of the solution
  PoissonTimes times;
};

struct PoissonControl {
  std::int64_t iterations = 1000;    // at most
  std::int64_t residual_every = 10;  // iterations
  double tolerance = 0;              // stop when |b - M x| <= tolerance * |b|; looked at with the residual
  // Called on every rank after a new residual, at most some ten times a second. May throw to give up.
  std::function<void(const PoissonResidual&)> progress{};
};

class Poisson {
 public:
  // Collective. Throws BadInput if the grid is not one of the group's ranks.
  explicit Poisson(const Group& group, const PoissonSpec& spec, const PoissonOptions& options = {});
  Poisson(Poisson&&) noexcept;
  Poisson& operator=(Poisson&&) noexcept;
  ~Poisson();

  // Another right-hand side: this rank's block in C order. Collective. Throws BadInput for a wrong length or values that
  // are not finite or above 1e140.
  void set_source(std::span<const double> block);

  // Solves from x = 0. Collective, with the same `control` on every rank. Throws PeerLost, Timeout.
  PoissonResult solve(const PoissonControl& control = {});

  // This rank's block of the solution, or of the right-hand side, in C order.
  [[nodiscard]] std::vector<double> solution() const;
  [[nodiscard]] std::vector<double> source() const;
  // The whole lattice in C order, on every rank. Collective.
  [[nodiscard]] std::vector<double> gather(std::span<const double> block) const;

  [[nodiscard]] const PoissonSpec& spec() const noexcept;
  [[nodiscard]] const PoissonBlock& block() const noexcept;
  // Bytes that this rank sends to others in one iteration, padding included.
  [[nodiscard]] std::int64_t bytes_sent() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::lattice
