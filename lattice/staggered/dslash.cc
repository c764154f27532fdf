#include "lattice/staggered/dslash.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "lattice/support/over_ranks.h"
#include "src/base/clock.h"

namespace onehop::lattice::detail {

namespace {

// The table `neighbours` of DslashLoop. `lengths` is 1, or 2 with long links.
std::vector<std::int32_t> neighbour_table(const Geometry& geometry, int lengths) {
  const auto dims = static_cast<std::size_t>(geometry.dims());
  std::vector<std::int32_t> table(static_cast<std::size_t>(geometry.vectors()) * dims * 2 *
                                  static_cast<std::size_t>(lengths));
  for (int length = 0; length < lengths; ++length) {
    const auto found = geometry.neighbours(length == 0 ? 1 : 3);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t vector = i / (2 * dims);
      const std::size_t at = (vector * static_cast<std::size_t>(lengths) + static_cast<std::size_t>(length)) * 2 * dims;
      table[at + i % (2 * dims)] = 2 * found[i].vector + (found[i].rotated ? 1 : 0);
    }
  }
  return table;
}

std::vector<std::int32_t> rotation_table(const Geometry& geometry, int lengths) {
  std::vector<std::int32_t> table;
  for (int kind = 0; kind < lengths * geometry.dims(); ++kind) {
    for (const Side side : {Side::below, Side::above}) {
      const auto source = geometry.lane_source(kind % geometry.dims(), side);
      table.insert(table.end(), source.begin(), source.end());
    }
  }
  return table;
}

// Bytes of the links of all ranks on this machine, each link stored once.
double bytes_once(const DslashLattice& lattice, std::size_t bytes_of_a_number) {
  const auto ranks = static_cast<double>(lattice.group.local_ranks().size());
  return ranks * static_cast<double>(lattice.geometry.sites()) * lattice.kinds() * 18 *
         static_cast<double>(bytes_of_a_number);
}

}  // namespace

DslashLattice::DslashLattice(const Group& of, Geometry on, std::span<const std::span<const std::complex<double>>> given)
    : group(of), geometry(std::move(on)), sites(lexicographic_sites(geometry)) {
  const auto lengths = static_cast<int>(given.size());
  neighbours = neighbour_table(geometry, lengths);
  rotations = rotation_table(geometry, lengths);
  for (const auto& values : given) {
    for (int direction = 0; direction < geometry.dims(); ++direction) {
      Field<double> field(field_shape(geometry, 9));
      load_lexicographic(values, sites, field, 0, 9 * geometry.dims(), 9 * direction);
      if (geometry.is_cut(direction)) {
        const std::array arrays{std::as_writable_bytes(field.memory.span())};
        const std::int64_t bytes = field.shape.element() * static_cast<std::int64_t>(sizeof(double));
        Plan(group, geometry.halo(bytes, ElementType::float64, {}, group.rank()), arrays).run();
      }
      links.kinds.push_back(std::move(field.memory));
      links.factors.push_back(1);
    }
  }
}

DslashLinks<float> to_single(const DslashLinks<double>& links) {
  DslashLinks<float> made;
  made.factors = links.factors;
  for (const auto& kind : links.kinds) {
    Buffer<float>& to = made.kinds.emplace_back(kind.size());
    std::ranges::transform(kind.span(), to.data(), [](double x) { return static_cast<float>(x); });
  }
  return made;
}

DslashLinks<std::int16_t> to_half(const DslashLinks<double>& links, const Group& group, int dims) {
  DslashLinks<std::int16_t> made;
  std::vector<double> largest(links.kinds.size() / static_cast<std::size_t>(dims));
  for (std::size_t kind = 0; kind < links.kinds.size(); ++kind) {
    for (const double x : links.kinds[kind].span()) {
      double& so_far = largest[kind / static_cast<std::size_t>(dims)];
      so_far = std::max(so_far, std::abs(x));
    }
  }
  largest_over_ranks(group, largest);
  for (std::size_t kind = 0; kind < links.kinds.size(); ++kind) {
    const double unit = std::max(largest[kind / static_cast<std::size_t>(dims)], 1e-30) / 32767;
    made.factors.push_back(unit);
    Buffer<std::int16_t>& to = made.kinds.emplace_back(links.kinds[kind].size());
    std::ranges::transform(links.kinds[kind].span(), to.data(),
                           [unit](double x) { return static_cast<std::int16_t>(std::lround(x / unit)); });
  }
  return made;
}

double links_over_cache(const DslashLattice& lattice, std::size_t bytes_of_a_number) {
  constexpr double usual_cache = 32 << 20;
  const double once = bytes_once(lattice, bytes_of_a_number);
  const auto cache = static_cast<double>(sysconf(_SC_LEVEL3_CACHE_SIZE));
  return once / (cache > 0 ? cache : usual_cache);
}

bool better_in_order(const DslashLattice& lattice, std::size_t bytes_of_a_number) {
  const double once = bytes_once(lattice, bytes_of_a_number);
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  const double share = links_over_cache(lattice, bytes_of_a_number);
  return (4 * share < 1 || share > 1) && 8 * once < memory;
}

template <class Link>
DslashLinks<Link> in_order_of_use(const DslashLattice& lattice, const DslashLinks<Link>& links) {
  const std::int64_t lanes = lattice.geometry.spec().lanes;
  const std::int64_t kinds = lattice.kinds();
  DslashLinks<Link> made{
      {}, links.factors, Buffer<Link>(static_cast<std::size_t>(lattice.geometry.vectors() * kinds * 36 * lanes))};
  Link* to = made.stream.data();
  for (std::int64_t i = 0; i < lattice.geometry.vectors() * kinds; ++i) {
    const Link* of_kind = links.kinds[static_cast<std::size_t>(i % kinds)].data();
    to = std::copy_n(of_kind + i / kinds * 18 * lanes, 18 * lanes, to);
    const std::int32_t where = lattice.neighbours[static_cast<std::size_t>(2 * i)];
    const std::int32_t* rotation = lattice.rotations.data() + i % kinds * 2 * lanes;
    const Link* from = of_kind + std::int64_t{where >> 1} * 18 * lanes;
    for (std::int64_t n = 0; n < 18 * lanes; ++n)
      *to++ = from[(where & 1) != 0 ? n / lanes * lanes + rotation[n % lanes] : n];
  }
  return made;
}

template DslashLinks<double> in_order_of_use(const DslashLattice&, const DslashLinks<double>&);
template DslashLinks<float> in_order_of_use(const DslashLattice&, const DslashLinks<float>&);
template DslashLinks<std::int16_t> in_order_of_use(const DslashLattice&, const DslashLinks<std::int16_t>&);

template <class Link, class Real>
DslashField<Link, Real>::DslashField(const DslashLattice& lattice, const DslashLinks<Link>& links,
                                     const base::ThreadPool& pool, const DslashFieldOptions& options)
    : field(field_shape(lattice.geometry, 3, options.num_rhs)),
      lattice_(&lattice),
      links_(&links),
      pool_(&pool),
      kernel_(dslash_kernel<Link, Real>(lattice.geometry.spec().lanes, options.num_rhs, options.plain)),
      overlap_(options.overlap) {
  std::ranges::copy(links.factors, pattern_.factors.begin());
  for (std::size_t kind = 0; kind < links.kinds.size(); ++kind) pattern_.links[kind] = links.kinds[kind].data();
  if (links.stream.size() > 0) pattern_.stream = links.stream.data();
  pattern_.neighbours = lattice.neighbours.data();
  pattern_.rotations = lattice.rotations.data();
  pattern_.field = field.data();
  pattern_.kinds = lattice.kinds();
  pattern_.directions = lattice.geometry.dims();
  pattern_.ahead = links.stream.size() > 0 && links_over_cache(lattice, sizeof(Link)) <= 1 ? 0 : 6;
  pattern_.num_rhs = options.num_rhs;
  const auto bytes = field.shape.element() * static_cast<std::int64_t>(sizeof(Real));
  if (options.exchange) {
    exchange_ = options.exchange(lattice.geometry, bytes, std::as_writable_bytes(field.memory.span()));
  } else if (lattice.group.size() > 1) {
    exchange_ = std::make_unique<PlanExchange>(lattice.group, lattice.geometry, field, options.codec);
  }
}

template <class Link, class Real>
void DslashField<Link, Real>::loop(const Target& target, std::int64_t first, std::int64_t last) {
  if (first == last) return;
  auto* partials = target.products == nullptr ? nullptr : &target.products->partials_so_far();
  pool_->run([&](int thread) {
    DslashLoop<Link, Real> mine = pattern_;
    std::tie(mine.first, mine.last) = pool_->part(first, last, thread);
    mine.out = target.out;
    mine.out_begin = target.begin;
    mine.own = target.own;
    mine.own_factor = target.own_factor;
    mine.dslash_factor = target.dslash_factor;
    if (partials != nullptr) {
      auto& sums = (*partials)[static_cast<std::size_t>(thread)];
      mine.plain = sums.plain.data();
      mine.wide = target.products->sums().wide() ? sums.wide.data() : nullptr;
    }
    DslashKernel<Link, Real> kernel = kernel_;
    for (mine.rhs = 0; mine.rhs < mine.num_rhs; mine.rhs += kernel.rhs_at_once) {
      if (mine.num_rhs - mine.rhs < kernel.rhs_at_once)
        kernel = dslash_kernel<Link, Real>(field.shape.lanes, mine.num_rhs - mine.rhs);
      kernel.run(mine);
    }
  });
}

template <class Link, class Real>
void DslashField<Link, Real>::apply(int parity, const Target& target) {
  const Geometry& geometry = lattice_->geometry;
  const int local = lattice_->local(parity);
  const std::int64_t first = geometry.parity_begin(local);
  const std::int64_t interior = overlap_ ? geometry.interior_end(local) : first;
  const std::int64_t last = geometry.parity_end(local);
  if (exchange_) {
    const double begin = base::steady_seconds();
    exchange_->start(1 - parity);
    counters.waited += base::steady_seconds() - begin;
  }
  // Odd and even applications run in opposite directions: each begins with the links that the last one left in the
  // caches.
  pattern_.backwards = parity == 0 && pattern_.stream == nullptr;
  loop(target, first, interior);
  if (exchange_) {
    const double begin = base::steady_seconds();
    exchange_->finish(1 - parity);
    counters.waited += base::steady_seconds() - begin;
  }
  loop(target, interior, last);
  const auto sites = static_cast<double>((last - first) * geometry.spec().lanes);
  const double matrices = 2 * lattice_->kinds();
  const double passes = std::ceil(static_cast<double>(field.shape.num_rhs) / kernel_.rhs_at_once);
  counters.flops +=
      sites * field.shape.num_rhs * (66 * matrices + 6 * (matrices - 1) + (target.own != nullptr ? 12 : 0));
  counters.bytes += sites * (passes * matrices * 18 * sizeof(Link) + field.shape.num_rhs * 18.0 * sizeof(Real));
}

template <class Link, class Real>
NormalOperator<Link, Real>::NormalOperator(DslashField<Link, Real>& dslash, Sums& sums, int parity, double mass)
    : dslash_(&dslash),
      space_(dslash.pool(), sums,
             {dslash.lattice().count(parity), 0, dslash.field.shape.num_rhs, 3, dslash.field.shape.lanes}),
      parity_(parity),
      mass_(mass) {}

template <class Link, class Real>
Real* NormalOperator<Link, Real>::input() {
  return dslash_->field.data() + dslash_->lattice().begin(parity_) * dslash_->field.shape.element();
}

template <class Link, class Real>
void NormalOperator<Link, Real>::run(const Real* in, Real* out, VectorSpace<Real>* products) {
  if (in != input()) space_.copy(in, input());
  if (products != nullptr) static_cast<void>(products->partials());
  dslash_->apply(1 - parity_, {.out = dslash_->field.data()});
  dslash_->apply(parity_, {.out = out,
                           .begin = dslash_->lattice().begin(parity_),
                           .dslash_factor = -1,
                           .own = input(),
                           .own_factor = 4 * mass_ * mass_,
                           .products = products});
}

template class DslashField<double, double>;
template class DslashField<float, float>;
template class DslashField<std::int16_t, float>;
template class NormalOperator<double, double>;
template class NormalOperator<float, float>;
template class NormalOperator<std::int16_t, float>;

}  // namespace onehop::lattice::detail
