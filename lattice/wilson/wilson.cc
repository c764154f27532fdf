#include "onehop/lattice/wilson.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "lattice/geometry/memory_need.h"
#include "lattice/solver/same_call.h"
#include "lattice/solver/source_scale.h"
#include "lattice/wilson/wilson_impl.h"
#include "onehop/error.h"
#include "onehop/lattice/clover.h"
#include "src/base/text.h"
#include "src/base/thread_count.h"

namespace onehop::lattice {

using detail::Buffer;
using detail::WilsonCore;
using detail::WilsonStorage;
using Number = std::complex<double>;

namespace {

constexpr double solver_spinors = 14;  // full spinor fields that a solve keeps at most

GeometrySpec vector_spec(const Gauge& gauge, const WilsonOptions& options) {
  GeometrySpec spec = gauge.geometry().spec();
  if (spec.extents.size() != 4)
    throw BadInput("wilson: expected a lattice of four directions, found " + std::to_string(spec.extents.size()));
  if (!std::isfinite(options.kappa) || !std::isfinite(options.csw)) {
    throw BadInput("wilson: expected finite numbers as kappa and c_sw, found " +
                   onehop::base::number_text(options.kappa) + " and " + onehop::base::number_text(options.csw));
  }
  if (options.lanes < 0 || options.threads < 0)
    throw BadInput("wilson: expected lanes and threads of 0 (chosen by onehop) or more, found " +
                   std::to_string(options.lanes) + " and " + std::to_string(options.threads));
  spec.parities = 2;
  spec.width = 1;
  return spec;
}

}  // namespace

double wilson_kappa(double mass) {
  const double kappa = 1 / (8 + 2 * mass);
  if (!std::isfinite(kappa) || !std::isfinite(mass))
    throw BadInput("wilson: expected a finite mass other than -4, found " + onehop::base::number_text(mass));
  return kappa;
}

Wilson::Impl::Impl(const Gauge& gauge, const WilsonOptions& the_options)
    : group(gauge.group()),
      options(the_options),
      spec(vector_spec(gauge, the_options)),
      links(gauge.links()),
      pool(base::thread_count(options.threads, group)),
      geometry(spec_of(options.precision == Precision::double_ ? lanes<double>() : lanes<float>())) {
  if (options.recon != 12 && options.recon != 18)
    throw BadInput("wilson: expected links of 12 or 18 real numbers (recon), found " + std::to_string(options.recon));
  if (options.csw == 0) return;
  // The field strength from links with ghosts, and the blocks with their inverses.
  double places = 1;
  for (const std::int64_t extent : geometry.block()) places *= static_cast<double>(extent) + 2;
  const double sites = static_cast<double>(geometry.sites());
  detail::require_memory_for(group, spec.extents,
                             5 * detail::matrix_bytes * places + 6 * detail::matrix_bytes * sites +
                                 2 * sizeof(double) * clover_numbers * sites,
                             "clover blocks");
  blocks = clover_blocks(clover_leaves(gauge), options.kappa * options.csw);
  inverses = inverse_blocks(blocks);
}

GeometrySpec Wilson::Impl::spec_of(int lanes) const {
  GeometrySpec found = spec;
  found.lanes = lanes;
  return found;
}

template <class T>
int Wilson::Impl::lanes() const {
  const int supported = detail::wilson_lanes<T>();
  return geometry_lanes(spec, options.lanes > 0 ? std::min(supported, options.lanes) : supported);
}

template <class T>
Wilson::Impl::InPrecision<T>& Wilson::Impl::in_precision() {
  if constexpr (std::is_same_v<T, double>) {
    return in_double;
  } else {
    return in_single;
  }
}

template <class T>
WilsonCore<T>& Wilson::Impl::core(int lanes, int num_rhs, bool half, bool half_halo) {
  InPrecision<T>& cache = in_precision<T>();
  auto& storage = cache.storages[{lanes, half}];
  if (!storage) {
    storage = std::make_unique<WilsonStorage<T>>(group, Geometry(spec_of(lanes)), links, options.recon,
                                                 options.antiperiodic, half);
    if (!blocks.empty()) storage->set_clover(blocks, inverses);
  }
  auto& found = cache.cores[{lanes, num_rhs, half, half_halo}];
  if (!found) found = std::make_unique<WilsonCore<T>>(*storage, pool, num_rhs, nullptr, half_halo);
  return *found;
}

int Wilson::Impl::num_rhs_of(std::span<const Number> fields) const {
  const auto length = static_cast<std::size_t>(geometry.sites()) * 12;
  if (!fields.empty() && fields.size() % length == 0) return static_cast<int>(fields.size() / length);
  throw BadInput("wilson: expected fields of " + std::to_string(length) +
                 " complex numbers (four spins times three colours per site of the block), found " +
                 std::to_string(fields.size()));
}

namespace {

// Calls visit(i, j) for each site of a parity and each right-hand side: in lexicographic order the site's numbers begin
// at i, in the layout of WilsonCore at j.
template <class T, class Visit>
void each_site(const WilsonCore<T>& core, int parity, Visit visit) {
  const WilsonStorage<T>& storage = core.storage();
  const auto lanes = static_cast<std::size_t>(storage.lanes());
  const auto num_rhs = static_cast<std::size_t>(core.num_rhs());
  const std::size_t first = static_cast<std::size_t>(storage.geometry.parity_begin(storage.local(parity))) * lanes;
  const std::size_t count = static_cast<std::size_t>(storage.vectors(parity)) * lanes;
  const std::size_t of_field = storage.sites.size() * 12;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t site = static_cast<std::size_t>(storage.sites[first + i]) * 12;
    for (std::size_t rhs = 0; rhs < num_rhs; ++rhs) {
      visit(rhs * of_field + site, (i / lanes * num_rhs + rhs) * 24 * lanes + i % lanes);
    }
  }
}

}  // namespace

template <class T>
void Wilson::Impl::load(const WilsonCore<T>& core, std::span<const Number> fields, int parity, T* to) const {
  const auto lanes = static_cast<std::size_t>(core.storage().lanes());
  each_site(core, parity, [&](std::size_t i, std::size_t j) {
    for (std::size_t n = 0; n < 12; ++n) {
      to[j + 2 * n * lanes] = static_cast<T>(fields[i + n].real());
      to[j + (2 * n + 1) * lanes] = static_cast<T>(fields[i + n].imag());
    }
  });
}

template <class T>
void Wilson::Impl::unload(const WilsonCore<T>& core, const T* from, int parity, std::span<Number> fields) const {
  const auto lanes = static_cast<std::size_t>(core.storage().lanes());
  each_site(core, parity, [&](std::size_t i, std::size_t j) {
    for (std::size_t n = 0; n < 12; ++n) {
      const T* const at = from + j + 2 * n * lanes;
      fields[i + n] = {static_cast<double>(at[0]), static_cast<double>(at[lanes])};
    }
  });
}

template <class T>
void Wilson::Impl::precondition(WilsonCore<T>& core, const T* in, T* middle, T* out, bool dagger) const {
  const double square = options.kappa * options.kappa;
  if (core.storage().has_clover()) {
    core.dslash(1, in, middle, {.form = WilsonForm::clover, .inverse = true}, dagger);
    core.dslash(0, middle, out, {.form = WilsonForm::clover_other, .factor = -square, .other = in}, dagger);
  } else {
    core.dslash(1, in, middle, {}, dagger);
    core.dslash(0, middle, out, {.form = WilsonForm::add, .factor = -square, .other = in}, dagger);
  }
}

template <class T>
std::vector<Number> Wilson::Impl::apply(std::span<const Number> fields, bool dagger) {
  WilsonCore<T>& hopping = core<T>(lanes<T>(), num_rhs_of(fields), options.precision == Precision::half);
  const Buffer<T> in[2] = {Buffer<T>(hopping.size(0)), Buffer<T>(hopping.size(1))};
  std::vector<Number> found(fields.size());
  for (const int parity : {0, 1}) load(hopping, fields, parity, in[parity].data());
  for (const int parity : {0, 1}) {
    const Buffer<T> out(hopping.size(parity));
    const WilsonForm form = hopping.storage().has_clover() ? WilsonForm::clover_other : WilsonForm::add;
    hopping.dslash(parity, in[1 - parity].data(), out.data(),
                   {.form = form, .factor = -options.kappa, .other = in[parity].data()}, dagger);
    unload(hopping, out.data(), parity, std::span(found));
  }
  return found;
}

template <class T>
std::vector<Number> Wilson::Impl::dslash(std::span<const Number> fields, bool dagger) {
  WilsonCore<T>& hopping = core<T>(lanes<T>(), num_rhs_of(fields), options.precision == Precision::half);
  std::vector<Number> found(fields.size());
  for (const int parity : {0, 1}) {
    const Buffer<T> in(hopping.size(1 - parity));
    const Buffer<T> out(hopping.size(parity));
    load(hopping, fields, 1 - parity, in.data());
    hopping.dslash(parity, in.data(), out.data(), {}, dagger);
    unload(hopping, out.data(), parity, std::span(found));
  }
  return found;
}

template <class T>
std::vector<Number> Wilson::Impl::precondition(std::span<const Number> fields, bool dagger) {
  WilsonCore<T>& hopping = core<T>(lanes<T>(), num_rhs_of(fields), options.precision == Precision::half);
  const Buffer<T> in(hopping.size(0));
  const Buffer<T> middle(hopping.size(1));
  const Buffer<T> out(hopping.size(0));
  std::vector<Number> found(fields.size());
  load(hopping, fields, 0, in.data());
  precondition(hopping, in.data(), middle.data(), out.data(), dagger);
  unload(hopping, out.data(), 0, std::span(found));
  return found;
}

template int Wilson::Impl::lanes<float>() const;
template int Wilson::Impl::lanes<double>() const;
template WilsonCore<float>& Wilson::Impl::core<float>(int, int, bool, bool);
template WilsonCore<double>& Wilson::Impl::core<double>(int, int, bool, bool);
template void Wilson::Impl::load(const WilsonCore<float>&, std::span<const Number>, int, float*) const;
template void Wilson::Impl::load(const WilsonCore<double>&, std::span<const Number>, int, double*) const;
template void Wilson::Impl::unload(const WilsonCore<float>&, const float*, int, std::span<Number>) const;
template void Wilson::Impl::unload(const WilsonCore<double>&, const double*, int, std::span<Number>) const;
template void Wilson::Impl::precondition(WilsonCore<float>&, const float*, float*, float*, bool) const;
template void Wilson::Impl::precondition(WilsonCore<double>&, const double*, double*, double*, bool) const;

Wilson::Wilson(const Gauge& gauge, const WilsonOptions& options) {
  onehop::detail::require_same(gauge.group(), "Wilson",
                               {{"kappa", options.kappa},
                                {"csw", options.csw},
                                {"antiperiodic", options.antiperiodic},
                                {"recon", options.recon},
                                {"precision", options.precision},
                                {"lanes", options.lanes}});
  impl_ = std::make_unique<Impl>(gauge, options);
}
Wilson::Wilson(Wilson&&) noexcept = default;
Wilson& Wilson::operator=(Wilson&&) noexcept = default;
Wilson::~Wilson() = default;

const WilsonOptions& Wilson::options() const noexcept { return impl_->options; }
const Geometry& Wilson::geometry() const noexcept { return impl_->geometry; }
int Wilson::threads() const noexcept { return impl_->pool.size(); }

std::vector<Number> Wilson::dslash(std::span<const Number> fields, bool dagger) {
  detail::require_same(impl_->group, "dslash", fields, {{"dagger", dagger}});
  return impl_->options.precision == Precision::double_ ? impl_->dslash<double>(fields, dagger)
                                                        : impl_->dslash<float>(fields, dagger);
}

std::vector<Number> Wilson::apply(std::span<const Number> fields, bool dagger) {
  detail::require_same(impl_->group, "apply", fields, {{"dagger", dagger}});
  return impl_->options.precision == Precision::double_ ? impl_->apply<double>(fields, dagger)
                                                        : impl_->apply<float>(fields, dagger);
}

std::vector<Number> Wilson::precondition(std::span<const Number> fields, bool dagger) {
  detail::require_same(impl_->group, "precondition", fields, {{"dagger", dagger}});
  return impl_->options.precision == Precision::double_ ? impl_->precondition<double>(fields, dagger)
                                                        : impl_->precondition<float>(fields, dagger);
}

WilsonSolve Wilson::solve(std::span<const Number> sources, const SolverOptions& options, const WilsonSolver& solver) {
  detail::require_same(impl_->group, "solve", sources, {{"method", solver.method}, {"schwarz", solver.schwarz}},
                       &options);
  const int num_rhs = impl_->num_rhs_of(sources);
  if (!(options.tolerance > 0) || options.iterations < 0)
    throw BadInput("wilson: expected a tolerance above 0 and 0 iterations or more, found " +
                   onehop::base::number_text(options.tolerance) + " and " + std::to_string(options.iterations));
  if (options.precision == Precision::half)
    throw BadInput("wilson: expected precision single or double, found half; use it as the sloppy precision");
  check_half_halo(options);
  if (solver.schwarz < 0 || (solver.schwarz > 0 && solver.method == WilsonMethod::cgnr))
    throw BadInput("wilson: expected 0 Schwarz steps, or more with the method auto or bicgstab, found " +
                   std::to_string(solver.schwarz) + (solver.method == WilsonMethod::cgnr ? " with cgnr" : ""));
  detail::require_memory_for(impl_->group, impl_->spec.extents,
                             solver_spinors * num_rhs * static_cast<double>(impl_->geometry.sites()) * 24 *
                                 (options.precision == Precision::double_ ? sizeof(double) : sizeof(float)),
                             "a solve of Wilson quarks");
  const detail::SourceScale scale(impl_->group, sources, num_rhs);
  WilsonSolve found = impl_->solve(scale.sources(), options, solver);
  scale.restore(found.solution);
  return found;
}

}  // namespace onehop::lattice
