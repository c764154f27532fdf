#include "lattice/solver/vector_space.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

#include "lattice/solver/vector_loops.h"

namespace onehop::lattice::detail {

template <class Real>
VectorSpace<Real>::VectorSpace(const base::ThreadPool& pool, Sums& sums, const FieldShape& shape)
    : shape_(shape), pool_(&pool), sums_(&sums), partials_(static_cast<std::size_t>(pool.size())) {
  const auto numbers = 2 * static_cast<std::size_t>(shape.num_rhs);
  scratch_.resize(numbers);
  for (Partial& each : partials_) {
    each.plain.resize(numbers + 8);  // padding of a cache line, so that threads share none
    if (sums.wide()) each.wide.resize(numbers);
  }
}

template <class Real>
std::vector<typename VectorSpace<Real>::Partial>& VectorSpace<Real>::partials() {
  for (Partial& each : partials_) {
    std::ranges::fill(each.plain, 0.0);
    std::ranges::fill(each.wide, Superaccumulator{});
  }
  return partials_;
}

template <class Real>
void VectorSpace<Real>::total(std::span<double> results) {
  if (sums_->wide()) {
    for (std::size_t thread = 1; thread < partials_.size(); ++thread) {
      for (std::size_t i = 0; i < results.size(); ++i) partials_[0].wide[i].add(partials_[thread].wide[i]);
    }
    sums_->run(std::span<const Superaccumulator>(partials_[0].wide).first(results.size()), results);
    return;
  }
  std::ranges::fill(results, 0.0);
  for (const Partial& each : partials_) {
    for (std::size_t i = 0; i < results.size(); ++i) results[i] += each.plain[i];
  }
  sums_->run(results);
}

template <class Real>
void VectorSpace<Real>::count(double flops_a_number, int arrays) {
  const auto reals = static_cast<double>(size());
  flops += flops_a_number * reals;
  bytes += static_cast<double>(arrays) * reals * sizeof(Real);
}

template <class Real>
void VectorSpace<Real>::dot(const Real* a, const Real* b, std::span<Coefficient> result) {
  auto& sums = partials();
  pool_->run([&](int thread) {
    const auto [first, last] = pool_->part(0, shape_.vectors, thread);
    Partial& mine = sums[static_cast<std::size_t>(thread)];
    loops<Real>(shape_.lanes).dot({shape_, first, last, a, b, mine.plain.data(), mine.wide.data(), sums_->wide()});
  });
  total(scratch_);
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = {scratch_[2 * i], scratch_[2 * i + 1]};
  count(4, 2);
}

template <class Real>
void VectorSpace<Real>::norm(const Real* a, std::span<double> result) {
  auto& sums = partials();
  pool_->run([&](int thread) {
    const auto [first, last] = pool_->part(0, shape_.vectors, thread);
    Partial& mine = sums[static_cast<std::size_t>(thread)];
    loops<Real>(shape_.lanes).norm({shape_, first, last, a, a, mine.plain.data(), mine.wide.data(), sums_->wide()});
  });
  total(result);
  count(2, 1);
}

template <class Real>
void VectorSpace<Real>::step(std::span<const double> alpha, const Real* p, const Real* q, Real* x, Real* r,
                             std::span<double> norm) {
  auto& sums = partials();
  pool_->run([&](int thread) {
    const auto [first, last] = pool_->part(0, shape_.vectors, thread);
    Partial& mine = sums[static_cast<std::size_t>(thread)];
    loops<Real>(shape_.lanes)
        .step({shape_, first, last, alpha.data(), p, q, x, r, r, mine.plain.data(), mine.wide.data(), sums_->wide()});
  });
  total(norm);
  count(6, 6);
}

template <class Real>
void VectorSpace<Real>::step_residual(std::span<const double> alpha, const Real* q, Real* r, Real* to,
                                      std::span<double> norm) {
  auto& sums = partials();
  pool_->run([&](int thread) {
    const auto [first, last] = pool_->part(0, shape_.vectors, thread);
    Partial& mine = sums[static_cast<std::size_t>(thread)];
    loops<Real>(shape_.lanes)
        .step({shape_, first, last, alpha.data(), nullptr, q, nullptr, r, to, mine.plain.data(), mine.wide.data(),
               sums_->wide()});
  });
  total(norm);
  count(4, 3);
}

template <class Real>
void VectorSpace<Real>::direct(const Real* r, std::span<const double> beta, Real* p) {
  pool_->run([&](int thread) {
    const auto [first, last] = pool_->part(0, shape_.vectors, thread);
    loops<Real>(shape_.lanes).direct({shape_, first, last, beta.data(), r, p});
  });
  count(2, 3);
}

template <class Real>
void VectorSpace<Real>::combine(std::span<const Coefficient> coefficients, std::span<const Real* const> terms,
                                Real* y) {
  CombineLoop<Real> loop{shape_, 0, 0, coefficients.data(), {}, static_cast<int>(terms.size()), y};
  std::ranges::copy(terms, loop.terms.begin());
  pool_->run([&](int thread) {
    CombineLoop<Real> mine = loop;
    std::tie(mine.first, mine.last) = pool_->part(0, shape_.vectors, thread);
    loops<Real>(shape_.lanes).combine(mine);
  });
  count(4 * static_cast<double>(terms.size()), static_cast<int>(terms.size()) + 1);
}

template <class Real>
void VectorSpace<Real>::add(const Real* a, std::span<const double> factors, const Real* b, Real* to) {
  std::vector<Coefficient> coefficients(factors.size(), 1.0);
  coefficients.insert(coefficients.end(), factors.begin(), factors.end());
  combine(coefficients, std::array{a, b}, to);
}

template <class Real>
void VectorSpace<Real>::shift(std::span<const double> alpha, std::span<const double> beta, std::span<const double> zeta,
                              std::span<const Real* const> r, std::span<Real* const> x, std::span<Real* const> p) {
  const auto shifts = static_cast<int>(x.size());
  const auto steps = static_cast<int>(r.size());
  ShiftLoop<Real> loop{shape_, 0, 0, alpha.data(), beta.data(), zeta.data(), {}, steps, x.data(), p.data(), shifts};
  std::ranges::copy(r, loop.r.begin());
  pool_->run([&](int thread) {
    ShiftLoop<Real> mine = loop;
    std::tie(mine.first, mine.last) = pool_->part(0, shape_.vectors, thread);
    loops<Real>(shape_.lanes).shift(mine);
  });
  count(5 * shifts * steps, steps + 4 * shifts);
}

template <class Real>
void VectorSpace<Real>::copy(const Real* from, Real* to) {
  pool_->run([&](int thread) {
    const auto [first, last] = pool_->part(0, shape_.vectors, thread);
    std::memcpy(to + first * shape_.element(), from + first * shape_.element(),
                static_cast<std::size_t>((last - first) * shape_.element()) * sizeof(Real));
  });
  count(0, 2);
}

template <class Real>
void VectorSpace<Real>::zero(Real* to) {
  std::memset(to, 0, size() * sizeof(Real));
}

template <class From, class To>
void convert(const base::ThreadPool& pool, const From* from, To* to, std::size_t count) {
  pool.run([&](int thread) {
    const auto [first, last] = pool.part(0, static_cast<std::int64_t>(count), thread);
    for (std::int64_t i = first; i < last; ++i) to[i] = static_cast<To>(from[i]);
  });
}

template class VectorSpace<double>;
template class VectorSpace<float>;
template void convert(const base::ThreadPool&, const double*, double*, std::size_t);
template void convert(const base::ThreadPool&, const double*, float*, std::size_t);
template void convert(const base::ThreadPool&, const float*, double*, std::size_t);
template void convert(const base::ThreadPool&, const float*, float*, std::size_t);

}  // namespace onehop::lattice::detail
