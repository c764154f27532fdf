#include "onehop/lattice/staggered.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "staggered_kernel.h"

namespace onehop::lattice {

namespace {

using Number = std::complex<double>;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

GeometrySpec vector_spec(const Gauge& gauge, int most) {
  GeometrySpec spec = gauge.geometry().spec();
  spec.colours = 2;
  if (most < 1) throw BadInput("staggered: expected 1 lane or more, found " + std::to_string(most));
  spec.lanes = geometry_lanes(spec, std::min(most, 8));
  return spec;
}

}  // namespace

struct Staggered::Impl {
  Impl(const Gauge& gauge, const StaggeredOptions& options);

  Group group;
  Geometry geometry;
  std::size_t lanes;
  std::size_t sides;  // neighbours of a site
  std::vector<double> links;
  std::vector<Geometry::Neighbour> neighbours;
  std::vector<int> lane_sources;
  std::vector<std::int64_t> sites;  // [vector][lane]
  detail::HopKernel kernel;
  std::vector<double> work;  // a field with ghosts, of both colours
  std::vector<double> sums;  // one number of every rank
  std::vector<Plan> faces;   // per colour of the whole lattice
  std::vector<Plan> gather_sums;
  double waited = 0;

  [[nodiscard]] int local_colour(int colour) const { return (colour + geometry.origin_colour(group.rank())) % 2; }
  [[nodiscard]] std::size_t begin_of(int local) const {
    return static_cast<std::size_t>(geometry.colour_begin(local)) * 6 * lanes;
  }
  [[nodiscard]] std::size_t length_of(int local) const {
    return static_cast<std::size_t>(geometry.colour_end(local) - geometry.colour_begin(local)) * 6 * lanes;
  }
  // Of a colour of the whole lattice, in an array of a whole field.
  [[nodiscard]] std::span<double> part(std::vector<double>& field, int colour) const {
    return std::span(field).subspan(begin_of(local_colour(colour)), length_of(local_colour(colour)));
  }
  [[nodiscard]] std::vector<double> empty() const {
    return std::vector<double>(static_cast<std::size_t>(geometry.vectors()) * 6 * lanes);
  }
  void make_links(const Gauge& gauge, bool antiperiodic);
  void check(std::span<const Number> field) const;
  void load(std::span<const Number> field, std::vector<double>& to) const;
  [[nodiscard]] std::vector<Number> unload(const std::vector<double>& from) const;
  // The other colour of `work`, hopped to sites of `colour`, into that part of `out`, which may be `work` itself.
  void hop(int colour, double* out);
  [[nodiscard]] double sum(double mine);
  [[nodiscard]] double dot(std::span<const double> a, std::span<const double> b);
  [[nodiscard]] StaggeredSolve solve(std::span<const Number> source, double mass, double tolerance, std::int64_t most);
};

Staggered::Impl::Impl(const Gauge& gauge, const StaggeredOptions& options)
    : group(gauge.group()),
      geometry(vector_spec(gauge, options.lanes)),
      lanes(static_cast<std::size_t>(geometry.spec().lanes)),
      sides(static_cast<std::size_t>(geometry.dims()) * 2),
      neighbours(geometry.neighbours()),
      kernel(detail::hop_kernel(geometry.spec().lanes)),
      work(static_cast<std::size_t>(geometry.vectors() + geometry.ghosts()) * 6 * lanes),
      sums(static_cast<std::size_t>(group.size())) {
  for (int d = 0; d < geometry.dims(); ++d) {
    for (const Side side : {Side::below, Side::above}) {
      const auto source = geometry.lane_source(d, side);
      lane_sources.insert(lane_sources.end(), source.begin(), source.end());
    }
  }
  for (std::int64_t k = 0; k < geometry.vectors(); ++k) {
    for (int lane = 0; lane < geometry.spec().lanes; ++lane) sites.push_back(geometry.site(k, lane));
  }
  make_links(gauge, options.antiperiodic);
  const std::array arrays{std::as_writable_bytes(std::span(work))};
  const auto bytes = static_cast<std::int64_t>(6 * lanes * sizeof(double));
  for (const int colour : {0, 1})
    faces.emplace_back(group, geometry.halo(bytes, ElementType::float64, colour, group.rank()), arrays);
  const std::array sum_arrays{std::as_writable_bytes(std::span(sums))};
  gather_sums.emplace_back(group, allgather(group.size(), 1, sizeof(double), group.rank()), sum_arrays);
}

void Staggered::Impl::make_links(const Gauge& gauge, bool antiperiodic) {
  const std::size_t dims = sides / 2;
  const std::size_t of_link = 18 * lanes;
  const auto vectors = static_cast<std::size_t>(geometry.vectors());
  const std::vector<Number> natural = gauge.links();
  const auto origin = geometry.origin(group.rank());
  std::vector<double> ahead((vectors + static_cast<std::size_t>(geometry.ghosts())) * dims * of_link);
  for (std::size_t k = 0; k < vectors; ++k) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      std::int64_t site = sites[k * lanes + lane];
      const std::size_t first = static_cast<std::size_t>(site) * dims * 9;
      std::int64_t before = 0;  // the coordinates of earlier directions, added up
      for (std::size_t mu = 0; mu < dims; ++mu) {
        const std::int64_t at = origin[mu] + site % geometry.block()[mu];
        site /= geometry.block()[mu];
        const bool across = antiperiodic && mu + 1 == dims && at + 1 == geometry.spec().extents[mu];
        const double phase = (before % 2 != 0) != across ? -1 : 1;
        before += at;
        for (std::size_t i = 0; i < 9; ++i) {
          const Number entry = phase * natural[first + mu * 9 + i];
          double* to = ahead.data() + (k * dims + mu) * of_link + i * 2 * lanes + lane;
          to[0] = entry.real();
          to[lanes] = entry.imag();
        }
      }
    }
  }
  const std::array arrays{std::as_writable_bytes(std::span(ahead))};
  const auto bytes = static_cast<std::int64_t>(dims * of_link * sizeof(double));
  Plan(group, geometry.halo(bytes, ElementType::float64, {}, group.rank()), arrays).run();
  links.resize(vectors * sides * of_link);
  for (std::size_t k = 0; k < vectors; ++k) {
    for (std::size_t mu = 0; mu < dims; ++mu) {
      const Geometry::Neighbour& below = neighbours[k * sides + 2 * mu];
      const double* from = ahead.data() + (static_cast<std::size_t>(below.vector) * dims + mu) * of_link;
      double* to = links.data() + (k * sides + 2 * mu) * of_link;
      for (std::size_t i = 0; i < 9; ++i) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
          const std::size_t there =
              below.rotated ? static_cast<std::size_t>(lane_sources[2 * mu * lanes + lane]) : lane;
          const double* entry = from + (i % 3 * 3 + i / 3) * 2 * lanes + there;  // transposed
          to[i * 2 * lanes + lane] = -entry[0];
          to[(i * 2 + 1) * lanes + lane] = entry[lanes];
        }
      }
      std::copy_n(ahead.data() + (k * dims + mu) * of_link, of_link, to + of_link);
    }
  }
}

void Staggered::Impl::check(std::span<const Number> field) const {
  if (static_cast<std::int64_t>(field.size()) == geometry.sites() * 3) return;
  throw BadInput("staggered: expected a field of " + std::to_string(geometry.sites() * 3) +
                 " complex numbers (three a site of the block), found " + std::to_string(field.size()));
}

void Staggered::Impl::load(std::span<const Number> field, std::vector<double>& to) const {
  for (std::size_t i = 0; i < sites.size(); ++i) {
    double* at = to.data() + i / lanes * 6 * lanes + i % lanes;
    for (std::size_t c = 0; c < 3; ++c) {
      const Number value = field[static_cast<std::size_t>(sites[i]) * 3 + c];
      at[2 * c * lanes] = value.real();
      at[(2 * c + 1) * lanes] = value.imag();
    }
  }
}

std::vector<Number> Staggered::Impl::unload(const std::vector<double>& from) const {
  std::vector<Number> field(sites.size() * 3);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const double* at = from.data() + i / lanes * 6 * lanes + i % lanes;
    for (std::size_t c = 0; c < 3; ++c)
      field[static_cast<std::size_t>(sites[i]) * 3 + c] = {at[2 * c * lanes], at[(2 * c + 1) * lanes]};
  }
  return field;
}

void Staggered::Impl::hop(int colour, double* out) {
  const int local = local_colour(colour);
  Plan& plan = faces[static_cast<std::size_t>(1 - colour)];
  detail::HopRange range{links.data(), neighbours.data(), lane_sources.data(), work.data(), out, geometry.dims()};
  plan.start();
  range.first = geometry.colour_begin(local);
  range.last = geometry.interior_end(local);
  kernel(range);
  const double begin = now();
  plan.finish();
  waited += now() - begin;
  range.first = range.last;
  range.last = geometry.colour_end(local);
  kernel(range);
}

// Added in the order of ranks, so that every rank has the same.
double Staggered::Impl::sum(double mine) {
  sums[static_cast<std::size_t>(group.rank())] = mine;
  const double begin = now();
  gather_sums[0].run();
  waited += now() - begin;
  double total = 0;
  for (const double each : sums) total += each;
  return total;
}

double Staggered::Impl::dot(std::span<const double> a, std::span<const double> b) {
  std::array<double, 8> partial{};
  for (std::size_t i = 0; i < a.size(); ++i) partial[i % 8] += a[i] * b[i];
  double mine = 0;
  for (const double each : partial) mine += each;
  return sum(mine);
}

// On even sites M x = b becomes (4 m^2 - D D) x_e = 2 m b_e - D b_o; then x_o = (b_o - D x_e) / 2 m.
StaggeredSolve Staggered::Impl::solve(std::span<const Number> source, double mass, double tolerance,
                                      std::int64_t most) {
  const double begin = now();
  waited = 0;
  StaggeredSolve result;
  std::vector<double> b = empty();
  load(source, b);
  std::vector<double> x = empty();
  std::vector<double> r = empty();
  std::vector<double> ap = empty();
  const double norm = dot(b, b);
  const auto odd_b = part(b, 1);
  std::ranges::copy(odd_b, part(work, 1).begin());
  hop(0, ap.data());
  const auto re = part(r, 0);
  const auto be = part(b, 0);
  const auto xe = part(x, 0);
  const auto ape = part(ap, 0);
  const auto p = part(work, 0);
  for (std::size_t i = 0; i < re.size(); ++i) re[i] = 2 * mass * be[i] - ape[i];
  std::ranges::copy(re, p.begin());
  double rr = dot(re, re);
  // The residual of the even sites is 2 m times that of the whole; a tenth less, as what is carried along differs from it by rounding.
  const double enough = 0.81 * tolerance * tolerance * norm * 4 * mass * mass;
  while (rr > enough && rr > 0 && result.iterations < most) {
    hop(1, work.data());
    hop(0, ap.data());
    for (std::size_t i = 0; i < p.size(); ++i) ape[i] = 4 * mass * mass * p[i] - ape[i];
    const double alpha = rr / dot(p, ape);
    for (std::size_t i = 0; i < p.size(); ++i) {
      xe[i] += alpha * p[i];
      re[i] -= alpha * ape[i];
    }
    const double next = dot(re, re);
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = re[i] + next / rr * p[i];
    rr = next;
    ++result.iterations;
  }
  std::ranges::copy(xe, p.begin());
  hop(1, ap.data());
  const auto xo = part(x, 1);
  const auto apo = part(ap, 1);
  for (std::size_t i = 0; i < xo.size(); ++i) xo[i] = (odd_b[i] - apo[i]) / (2 * mass);
  std::ranges::copy(xo, part(work, 1).begin());
  hop(0, ap.data());
  for (std::size_t i = 0; i < x.size(); ++i) r[i] = b[i] - 2 * mass * x[i] - ap[i];
  result.true_residual = norm > 0 ? std::sqrt(dot(r, r) / norm) : 0;
  result.converged = result.true_residual <= tolerance;
  result.solution = unload(x);
  result.seconds = now() - begin;
  result.communication_seconds = waited;
  return result;
}

Staggered::Staggered(const Gauge& gauge, const StaggeredOptions& options)
    : impl_(std::make_unique<Impl>(gauge, options)) {}
Staggered::Staggered(Staggered&&) noexcept = default;
Staggered& Staggered::operator=(Staggered&&) noexcept = default;
Staggered::~Staggered() = default;

const Geometry& Staggered::geometry() const noexcept { return impl_->geometry; }

std::vector<Number> Staggered::hop(std::span<const Number> field) {
  impl_->check(field);
  impl_->load(field, impl_->work);
  std::vector<double> out = impl_->empty();
  for (const int colour : {0, 1}) impl_->hop(colour, out.data());
  return impl_->unload(out);
}

StaggeredSolve Staggered::solve(std::span<const Number> source, double mass, double tolerance,
                                std::int64_t iterations) {
  impl_->check(source);
  if (!(mass > 0)) {
    throw BadInput("staggered: expected a mass above 0, found " + std::to_string(mass) +
                   "; without mass the operator may be singular");
  }
  if (!(tolerance > 0) || iterations < 0)
    throw BadInput("staggered: expected a tolerance above 0 and 0 iterations or more");
  return impl_->solve(source, mass, tolerance, iterations);
}

}  // namespace onehop::lattice
