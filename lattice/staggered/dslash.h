// The staggered hopping term D on one rank: fat and long links in one precision, and the fields that it is applied to.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lattice/geometry/face_exchange.h"
#include "lattice/solver/krylov.h"
#include "lattice/staggered/dslash_kernel.h"
#include "onehop/group.h"
#include "onehop/lattice/geometry.h"
#include "src/base/thread_pool.h"

namespace onehop::lattice::detail {

// Links, one array per kind: a fat link for each direction, then a long link for each direction. An array is
// [vector, with ghosts][row][column][re, im][lane].
template <class Link>
struct DslashLinks {
  std::vector<Buffer<Link>> kinds;
  std::vector<double> factors;  // per kind: link = stored numbers * factor
  Buffer<Link> stream;          // in place of `kinds`: see DslashLoop::stream
};

// Convert links to another precision. In half precision the largest fat and the largest long link of all ranks become
// 32767. Collective.
DslashLinks<float> to_single(const DslashLinks<double>& links);
DslashLinks<std::int16_t> to_half(const DslashLinks<double>& links, const Group& group, int dims);

// Geometry, neighbour tables and links, which all fields on one lattice share.
struct DslashLattice {
  // `links` holds the fat and optionally the long links: this rank's block in lexicographic order,
  // [site][direction][row][column]. The geometry's width must be 1, or 3 with long links. Collective.
  DslashLattice(const Group& group, Geometry geometry, std::span<const std::span<const std::complex<double>>> links);

  [[nodiscard]] int kinds() const { return static_cast<int>(links.kinds.size()); }
  // Converts a parity of the global coordinates to one of the coordinates within this rank's block. begin() and count()
  // take the former.
  [[nodiscard]] int local(int parity) const { return (parity + geometry.origin_parity(group.rank())) % 2; }
  [[nodiscard]] std::int64_t begin(int parity) const { return geometry.parity_begin(local(parity)); }
  [[nodiscard]] std::int64_t count(int parity) const { return geometry.parity_end(local(parity)) - begin(parity); }

  Group group;
  Geometry geometry;
  std::vector<std::int64_t> sites;
  std::vector<std::int32_t> neighbours;  // see DslashLoop
  std::vector<std::int32_t> rotations;
  DslashLinks<double> links;
};

// Bytes of the links of all ranks on this machine, each stored once, divided by the size of the last-level cache.
[[nodiscard]] double links_over_cache(const DslashLattice& lattice, std::size_t bytes_of_a_number);
// Whether to store every link twice, in the order of use (in_order_of_use, as DslashLoop::stream): if all links take
// less than a quarter of the last-level cache or more than all of it, and less than an eighth of the memory.
[[nodiscard]] bool better_in_order(const DslashLattice& lattice, std::size_t bytes_of_a_number);
template <class Link>
[[nodiscard]] DslashLinks<Link> in_order_of_use(const DslashLattice& lattice, const DslashLinks<Link>& links);

struct DslashCounters {
  double waited = 0;  // seconds spent starting and finishing halo exchanges
  double flops = 0;
  double bytes = 0;
};

// Creates the halo exchange of a field.
using MakeExchange = std::function<std::unique_ptr<FaceExchange>(const Geometry& geometry, std::int64_t element_bytes,
                                                                 std::span<std::byte> field)>;

struct DslashFieldOptions {
  int num_rhs = 1;
  Codec codec = Codec::raw;    // codec of the halo exchange
  bool plain = false;          // use the portable loops
  bool overlap = true;         // compute the interior during the exchange
  MakeExchange exchange = {};  // replaces the exchange by a Plan
};

// A field of colour vectors, and the hopping term that reads it. The lattice, links and pool must outlive this object.
template <class Link, class Real>
class DslashField {
 public:
  DslashField(const DslashLattice& lattice, const DslashLinks<Link>& links, const base::ThreadPool& pool,
              const DslashFieldOptions& options = {});

  struct Target {
    Real* out = nullptr;     // out = dslash_factor * D field + own_factor * own
    std::int64_t begin = 0;  // the number of the first vector at `out` and `own`
    double dslash_factor = 1;
    const Real* own = nullptr;
    double own_factor = 0;
    VectorSpace<Real>* products = nullptr;  // with `own`: adds the real part of <own, out> to its partial sums
  };
  // Computes the sites of this global parity from the field's sites of the other parity. Collective.
  void apply(int parity, const Target& target);

  Field<Real> field;
  DslashCounters counters;

  [[nodiscard]] const DslashLattice& lattice() const noexcept { return *lattice_; }
  [[nodiscard]] const base::ThreadPool& pool() const noexcept { return *pool_; }

 private:
  void loop(const Target& target, std::int64_t first, std::int64_t last);

  const DslashLattice* lattice_;
  const DslashLinks<Link>* links_;
  const base::ThreadPool* pool_;
  DslashKernel<Link, Real> kernel_;
  DslashLoop<Link, Real> pattern_;
  std::unique_ptr<FaceExchange> exchange_;
  bool overlap_;
};

// 4 m^2 - D D on the sites of one parity.
template <class Link, class Real>
class NormalOperator final : public LinearOperator<Real> {
 public:
  NormalOperator(DslashField<Link, Real>& dslash, Sums& sums, int parity, double mass);

  void set_mass(double mass) { mass_ = mass; }
  [[nodiscard]] int parity() const { return parity_; }
  [[nodiscard]] VectorSpace<Real>& space() override { return space_; }
  [[nodiscard]] Real* input() override;
  void apply(const Real* in, Real* out) override { run(in, out, nullptr); }
  void apply_and_project(const Real* in, Real* out, std::span<double> products) override {
    run(in, out, &space_);
    space_.total(products);
  }

 private:
  void run(const Real* in, Real* out, VectorSpace<Real>* products);

  DslashField<Link, Real>* dslash_;
  VectorSpace<Real> space_;
  int parity_;
  double mass_;
};

extern template DslashLinks<double> in_order_of_use(const DslashLattice&, const DslashLinks<double>&);
extern template DslashLinks<float> in_order_of_use(const DslashLattice&, const DslashLinks<float>&);
extern template DslashLinks<std::int16_t> in_order_of_use(const DslashLattice&, const DslashLinks<std::int16_t>&);
extern template class DslashField<double, double>;
extern template class DslashField<float, float>;
extern template class DslashField<std::int16_t, float>;
extern template class NormalOperator<double, double>;
extern template class NormalOperator<float, float>;
extern template class NormalOperator<std::int16_t, float>;

}  // namespace onehop::lattice::detail
