#include "onehop/poisson/poisson.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "onehop/count.h"
#include "onehop/error.h"
#include "poisson/poisson_faces.h"
#include "poisson/poisson_kernels.h"
#include "poisson/poisson_residuals.h"
#include "poisson/poisson_sum.h"
#include "src/base/clock.h"
#include "src/base/one_size.h"
#include "src/base/text.h"
#include "src/base/trace.h"
#include "src/group/require_same.h"

namespace onehop::poisson {

namespace {

using detail::AlignedArray;
using detail::FaceLayout;
using detail::PoissonEdges;
using detail::PoissonKernels;
using detail::PoissonUpdate;
using detail::Residuals;
using detail::SumScale;

constexpr double largest_source = 1e140;  // its square, summed over a lattice, is still finite
// The parts of every 16th iteration are timed: reading the clock costs as much as sending a short message.
constexpr std::int64_t timed_every = 16;

std::string text(std::int64_t number) { return std::to_string(number); }
std::string text(double number) { return onehop::base::number_text(number); }

// Scrambles a counter into 64 bits that look random (a multiply-and-shift mixer with good avalanche).
std::uint64_t scramble(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

double uniform(std::uint64_t seed, std::uint64_t site) {
  const std::uint64_t bits = scramble(scramble(seed) + (site + 1) * 0x9e3779b97f4a7c15);
  return static_cast<double>(bits >> 11) * 0x1p-52 - 1;  // 53 bits in [0, 2), so that the result is exact
}

void check(const PoissonSpec& spec) {
  for (std::size_t d = 0; d < 2; ++d) {
    if (spec.grid[d] < 1)
      throw BadInput("Poisson: expected a grid of at least 1 rank per dimension, found " +
                     text(std::int64_t{spec.grid[d]}));
    if (spec.extents[d] < spec.grid[d]) {
      throw BadInput("Poisson: expected at least one site per rank in dimension " + text(static_cast<std::int64_t>(d)) +
                     ", found " + base::counted(spec.extents[d], "site") + " for " +
                     base::counted(std::int64_t{spec.grid[d]}, "rank") + "; take another grid or a larger lattice");
    }
  }
  if (std::int64_t{spec.grid[0]} * spec.grid[1] > std::numeric_limits<int>::max())
    throw BadInput("Poisson: expected fewer than 2^31 ranks");
  if (spec.extents[0] > (std::int64_t{1} << 40) / spec.extents[1]) {
    throw BadInput("Poisson: expected at most 2^40 sites, found " + text(spec.extents[0]) + " x " +
                   text(spec.extents[1]));
  }
  if (!(spec.mass >= 1e-6 && spec.mass <= 1e6)) {
    throw BadInput("Poisson: expected a mass from 1e-6 to 1e6, found " + text(spec.mass) +
                   "; without mass the operator of a periodic lattice has no inverse");
  }
}

void check(const PoissonControl& control) {
  if (control.iterations < 0) {
    throw BadInput("Poisson: expected 0 iterations or more, found " + text(control.iterations));
  }
  if (control.residual_every < 1) {
    throw BadInput("Poisson: expected a residual every 1 iteration or more, found " + text(control.residual_every));
  }
  if (!(control.tolerance >= 0)) {
    throw BadInput("Poisson: expected a tolerance of 0 or more, found " + text(control.tolerance));
  }
}

// Accumulates the times of the parts of an iteration, in the iterations that are timed.
class Laps {
 public:
  void begin(bool look) {
    look_ = look;
    if (look_) last_ = base::steady_seconds();
  }
  void lap(double& total) {
    if (!look_) return;
    const double now = base::steady_seconds();
    total += now - last_;
    last_ = now;
  }

 private:
  bool look_ = false;
  double last_ = 0;
};

}  // namespace

std::array<int, 2> poisson_grid(std::array<std::int64_t, 2> extents, int ranks) {
  if (ranks < 1) throw BadInput("Poisson: expected 1 rank or more, found " + text(std::int64_t{ranks}));
  std::array<int, 2> best{0, 0};
  double shortest = std::numeric_limits<double>::infinity();
  for (int first = ranks; first >= 1; --first) {
    const int second = ranks / first;
    if (first * second != ranks || first > extents[0] || second > extents[1]) continue;
    // A dimension that is not cut sends nothing.
    const double length = (first > 1 ? static_cast<double>(extents[1]) / second : 0) +
                          (second > 1 ? static_cast<double>(extents[0]) / first : 0);
    if (length < shortest) {
      shortest = length;
      best = {first, second};
    }
  }
  if (best[0] == 0) {
    throw BadInput("Poisson: no grid of " + base::counted(std::int64_t{ranks}, "rank") +
                   " leaves every rank a site of a lattice of " + text(extents[0]) + " x " + text(extents[1]) +
                   "; take fewer ranks or a larger lattice");
  }
  return best;
}

PoissonBlock poisson_block(const PoissonSpec& spec, int rank) {
  check(spec);
  if (rank < 0 || rank >= spec.grid[0] * spec.grid[1]) {
    throw BadInput("Poisson: expected a rank from 0 to " + text(std::int64_t{spec.grid[0]} * spec.grid[1] - 1) +
                   ", found " + text(std::int64_t{rank}));
  }
  const std::array<std::int64_t, 2> at{rank / spec.grid[1], rank % spec.grid[1]};
  PoissonBlock block;
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t small = spec.extents[d] / spec.grid[d];
    const std::int64_t larger = spec.extents[d] % spec.grid[d];
    block.start[d] = at[d] * small + std::min(at[d], larger);
    block.extents[d] = small + (at[d] < larger ? 1 : 0);
  }
  return block;
}

std::vector<double> poisson_source(const PoissonSpec& spec, const PoissonBlock& block) {
  std::vector<double> source;
  source.reserve(static_cast<std::size_t>(block.extents[0] * block.extents[1]));
  for (std::int64_t i = block.start[0]; i < block.start[0] + block.extents[0]; ++i) {
    for (std::int64_t j = block.start[1]; j < block.start[1] + block.extents[1]; ++j) {
      source.push_back(uniform(spec.seed, static_cast<std::uint64_t>(i * spec.extents[1] + j)));
    }
  }
  return source;
}

struct Poisson::Impl {
  Impl(const Group& the_group, const PoissonSpec& the_spec, const PoissonOptions& options);

  Group group;
  PoissonSpec spec;
  PoissonBlock block;
  std::int64_t stride = 0;
  std::int64_t bytes_sent = 0;
  double largest = 0;  // |b| over the whole lattice
  std::array<AlignedArray, 2> x;
  AlignedArray b;
  std::size_t current = 0;  // which of the two holds the solution
  AlignedArray own_faces;
  SharedArray neighbours_faces;  // which neighbours on the same machine write directly
  PoissonEdges edges;
  PoissonKernels kernels = detail::best_poisson_kernels();
  std::unique_ptr<PoissonExchange> exchange;

  [[nodiscard]] AlignedArray padded() const { return AlignedArray(stride * block.extents[0]); }
  [[nodiscard]] std::vector<double> unpadded(const AlignedArray& array) const;
  void set_source(std::span<const double> values);
  [[nodiscard]] PoissonUpdate update() const;
  // One update from the current solution to the other array; returns this rank's part of the sum if `residual`.
  double step(bool residual, double rounder, Residuals& residuals, Laps& laps, PoissonTimes& times);
  PoissonResult solve(const PoissonControl& control);
};

Poisson::Impl::Impl(const Group& the_group, const PoissonSpec& the_spec, const PoissonOptions& options)
    : group(the_group), spec(the_spec) {
  onehop::detail::require_same(group, "Poisson",
                               {{"extents", spec.extents},
                                {"grid", spec.grid},
                                {"mass", spec.mass},
                                {"seed", spec.seed},
                                {"buffers", options.buffers},
                                {"enlargement", options.enlargement}});
  block = poisson_block(spec, 0);  // checks
  if (spec.grid[0] * spec.grid[1] != group.size()) {
    throw BadInput("Poisson: expected a grid of the group's " + base::counted(std::int64_t{group.size()}, "rank") +
                   ", found " + text(std::int64_t{spec.grid[0]}) + " x " + text(std::int64_t{spec.grid[1]}));
  }
  if (options.buffers < 1)
    throw BadInput("Poisson: expected 1 buffer or more, found " + text(std::int64_t{options.buffers}));
  block = poisson_block(spec, group.rank());
  stride = (block.extents[1] + detail::row_unit - 1) / detail::row_unit * detail::row_unit;
  x = {padded(), padded()};
  b = padded();
  set_source(poisson_source(spec, block));

  const Schedule faces = poisson_faces(spec, options.enlargement);
  const FaceLayout layout = detail::face_layout(block, options.enlargement);
  own_faces = AlignedArray(layout.elements);
  neighbours_faces = group.allocate(layout.elements * static_cast<std::int64_t>(sizeof(double)));
  for (std::size_t face = 0; face < 4; ++face) {
    edges.out[face] = own_faces.data() + layout.offset[face];
    edges.in[face] = reinterpret_cast<const double*>(neighbours_faces.bytes().data()) + layout.offset[face];
  }
  const std::array arrays{own_faces.bytes(), neighbours_faces.bytes()};
  exchange = options.exchange ? options.exchange(faces, arrays) : detail::plan_exchange(group, faces, arrays, options);
  bytes_sent = count(faces).ranks[static_cast<std::size_t>(group.rank())].bytes_sent;
}

std::vector<double> Poisson::Impl::unpadded(const AlignedArray& array) const {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(block.extents[0] * block.extents[1]));
  for (std::int64_t i = 0; i < block.extents[0]; ++i) {
    const double* row = array.data() + i * stride;
    values.insert(values.end(), row, row + block.extents[1]);
  }
  return values;
}

void Poisson::Impl::set_source(std::span<const double> values) {
  const std::int64_t sites = block.extents[0] * block.extents[1];
  double most = static_cast<std::int64_t>(values.size()) == sites ? 0 : -1;
  for (const double value : values) {
    if (most >= 0) most = std::abs(value) <= largest_source ? std::max(most, std::abs(value)) : -2;
  }
  // All ranks learn of an error on any rank, so that all throw.
  const std::vector<double> all = base::values_of_all(group, most);
  double over_all = 0;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const double found = all[rank];
    if (found == -1) {
      throw BadInput(
          "Poisson: expected as many values of the right-hand side as the block has sites, found another number on "
          "rank " +
          text(static_cast<std::int64_t>(rank)) + " (here: " + base::counted(sites, "site") + ", " +
          base::counted(static_cast<std::int64_t>(values.size()), "value") + ")");
    }
    if (found == -2) {
      throw BadInput(
          "Poisson: expected finite values of at most 1e140 in the right-hand side, found another one on rank " +
          text(static_cast<std::int64_t>(rank)));
    }
    over_all = std::max(over_all, found);
  }
  largest = over_all;
  for (std::int64_t i = 0; i < block.extents[0]; ++i) {
    std::copy_n(values.data() + i * block.extents[1], block.extents[1], b.data() + i * stride);
  }
}

PoissonUpdate Poisson::Impl::update() const {
  PoissonUpdate update;
  update.x = x[current].data();
  update.y = x[1 - current].data();
  update.b = b.data();
  update.stride = stride;
  update.extents = block.extents;
  update.wraps = spec.grid[1] == 1;
  update.diagonal = 4 + spec.mass * spec.mass;
  update.inverse = 1 / update.diagonal;
  return update;
}

double Poisson::Impl::step(bool residual, double rounder, Residuals& residuals, Laps& laps, PoissonTimes& times) {
  PoissonUpdate now = update();
  now.rounder = rounder;
  double sum = 0;
  residuals.start_faces();
  laps.lap(times.start);
  if (residual) {
    sum += kernels.interior_residual(now);
  } else {
    kernels.interior(now);
  }
  laps.lap(times.interior);
  residuals.finish_faces();
  laps.lap(times.wait);
  if (residual) {
    sum += kernels.boundary_residual(now, edges);
  } else {
    kernels.boundary(now, edges);
  }
  laps.lap(times.boundary);
  return sum;
}

PoissonResult Poisson::Impl::solve(const PoissonControl& control) {
  onehop::detail::require_same(group, "Poisson.solve",
                               {{"iterations", control.iterations},
                                {"residual_every", control.residual_every},
                                {"tolerance", control.tolerance}});
  check(control);
  for (AlignedArray& array : x) std::memset(array.data(), 0, array.bytes().size());
  std::memset(own_faces.data(), 0, own_faces.bytes().size());
  SumScale scale(static_cast<double>(spec.extents[0]) * static_cast<double>(spec.extents[1]), largest, spec.mass);
  PoissonResult result;
  Residuals residuals(*exchange, scale, control, result);
  std::int64_t looked_at = 0;
  Laps laps;
  const double begin = base::steady_seconds();
  std::int64_t k = 0;
  for (; k < control.iterations && !result.reached_tolerance; ++k) {
    const trace::Scope traced(trace::Kind::solver, "iteration", 0, static_cast<std::uint32_t>(k + 1));
    const bool residual = k % control.residual_every == 0;
    const bool look = k % timed_every == timed_every / 2;
    looked_at += look ? 1 : 0;
    laps.begin(look);
    const double sum = step(residual, residual ? scale.rounder(k) : 0, residuals, laps, result.times);
    current = 1 - current;
    residuals.take();
    if (residual && !result.reached_tolerance) residuals.keep(k, sum);
  }
  laps.begin(true);
  residuals.finish();
  laps.lap(result.times.residual);
  result.seconds = base::steady_seconds() - begin;
  result.iterations = k;
  // The residual of the solution itself: one more update, whose result is not used.
  PoissonTimes unused;
  laps.begin(false);
  residuals.keep(k, step(true, scale.rounder(k), residuals, laps, unused));
  residuals.finish();
  for (double* part : {&result.times.start, &result.times.interior, &result.times.wait, &result.times.boundary}) {
    *part /= static_cast<double>(std::max<std::int64_t>(looked_at, 1));
  }
  result.times.residual /= static_cast<double>(std::max<std::int64_t>(k, 1));
  return result;
}

Poisson::Poisson(const Group& group, const PoissonSpec& spec, const PoissonOptions& options)
    : impl_(std::make_unique<Impl>(group, spec, options)) {}
Poisson::Poisson(Poisson&&) noexcept = default;
Poisson& Poisson::operator=(Poisson&&) noexcept = default;
Poisson::~Poisson() = default;

void Poisson::set_source(std::span<const double> block) { impl_->set_source(block); }
PoissonResult Poisson::solve(const PoissonControl& control) { return impl_->solve(control); }
std::vector<double> Poisson::solution() const { return impl_->unpadded(impl_->x[impl_->current]); }
std::vector<double> Poisson::source() const { return impl_->unpadded(impl_->b); }
const PoissonSpec& Poisson::spec() const noexcept { return impl_->spec; }
const PoissonBlock& Poisson::block() const noexcept { return impl_->block; }
std::int64_t Poisson::bytes_sent() const noexcept { return impl_->bytes_sent; }

std::vector<double> Poisson::gather(std::span<const double> block) const {
  const PoissonSpec& spec = impl_->spec;
  const Gathered all = impl_->group.allgather(std::as_bytes(block));
  std::vector<double> whole(static_cast<std::size_t>(spec.extents[0] * spec.extents[1]));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const PoissonBlock part = poisson_block(spec, static_cast<int>(rank));
    const auto row_bytes = static_cast<std::size_t>(part.extents[1]) * sizeof(double);
    if (all[rank].size() != row_bytes * static_cast<std::size_t>(part.extents[0])) {
      throw Mismatch("Poisson: expected a block of " + text(part.extents[0]) + " x " + text(part.extents[1]) +
                     " doubles from rank " + text(static_cast<std::int64_t>(rank)) + ", found " +
                     base::counted(static_cast<std::int64_t>(all[rank].size()), "byte"));
    }
    for (std::int64_t i = 0; i < part.extents[0]; ++i) {
      const std::int64_t to = (part.start[0] + i) * spec.extents[1] + part.start[1];
      std::memcpy(whole.data() + to, all[rank].data() + static_cast<std::size_t>(i) * row_bytes, row_bytes);
    }
  }
  return whole;
}

}  // namespace onehop::poisson
