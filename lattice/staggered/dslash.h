// The hopping term of staggered quarks on one rank: links of fat and long dslash in one precision, and fields that are hopped.
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
#include "lattice/support/team.h"
#include "onehop/group.h"
#include "onehop/lattice/geometry.h"

namespace onehop::lattice::detail {

// Links of every kind: first those of dslash of one site, direction by direction, then those of three. A kind's links lie as
// [vector, ghosts too][row][column][re, im][lane].
template <class Link>
struct DslashLinks {
  std::vector<Buffer<Link>> kinds;
  std::vector<double> factors;  // a link is its numbers times this
  Buffer<Link> stream;          // in place of `kinds`: as DslashLoop has it
};

// The same links in another precision. In half precision the largest number of one length of hop is 32767, the same on all ranks. Collective.
DslashLinks<float> to_single(const DslashLinks<double>& links);
DslashLinks<std::int16_t> to_half(const DslashLinks<double>& links, const Group& group, int dims);

// What all fields on one lattice share.
struct DslashLattice {
  // `links`: this rank's block in lexicographic order, [site][direction][row][column], one such array for each length of hop, 1 and perhaps 3.
  // The geometry's width must be the longest. Collective.
  DslashLattice(const Group& group, Geometry geometry, std::span<const std::span<const std::complex<double>>> links);

  [[nodiscard]] int kinds() const { return static_cast<int>(links.kinds.size()); }
  // The parity of this rank's block that is that parity of the whole lattice.
  [[nodiscard]] int local(int parity) const { return (parity + geometry.origin_parity(group.rank())) % 2; }
  [[nodiscard]] std::int64_t begin(int parity) const { return geometry.parity_begin(local(parity)); }
  [[nodiscard]] std::int64_t count(int parity) const { return geometry.parity_end(local(parity)) - begin(parity); }

  Group group;
  Geometry geometry;
  std::vector<std::int64_t> sites;
  std::vector<std::int32_t> neighbours;  // as DslashLoop has them
  std::vector<std::int32_t> rotations;
  DslashLinks<double> links;
};

// The links of such numbers of all ranks of this machine, kept once, over the size of the last cache.
[[nodiscard]] double links_over_cache(const DslashLattice& lattice, std::size_t bytes_of_a_number);
// Whether links of such numbers are better kept twice, in the order of their use: where they are small beside the last cache, or so large that
// it does not hold them once, and there is plenty of memory.
[[nodiscard]] bool better_in_order(const DslashLattice& lattice, std::size_t bytes_of_a_number);
template <class Link>
[[nodiscard]] DslashLinks<Link> in_order_of_use(const DslashLattice& lattice, const DslashLinks<Link>& links);

struct DslashCounters {
  double waited = 0;  // seconds in which faces are started and finished
  double flops = 0;
  double bytes = 0;
};

// Makes the exchange of a field's faces.
using MakeExchange = std::function<std::unique_ptr<FaceExchange>(const Geometry& geometry, std::int64_t element_bytes,
                                                                 std::span<std::byte> field)>;

struct DslashFieldOptions {
  int num_rhs = 1;
  Codec codec = Codec::raw;    // of faces on their way
  bool plain = false;          // loops without the processor's vector instructions
  bool overlap = true;         // the interior is done while faces travel
  MakeExchange exchange = {};  // in place of plans
};

// A field of colour vectors, and the hopping term that reads it. The lattice, links and team must outlive it.
template <class Link, class Real>
class DslashField {
 public:
  DslashField(const DslashLattice& lattice, const DslashLinks<Link>& links, Team& team,
              const DslashFieldOptions& options = {});

  struct Target {
    Real* out = nullptr;  // of vectors from `begin` on
    std::int64_t begin = 0;
    double dslash_factor = 1;
    const Real* own = nullptr;  // as `out`; adds own_factor times this
    double own_factor = 0;
    VectorSpace<Real>* products = nullptr;  // with `own`: <own, out> is added to its partial sums
  };
  // To the sites of this parity of the whole lattice, from the field's sites of the other parity. Collective.
  void apply(int parity, const Target& target);

  Field<Real> field;
  DslashCounters counters;

  [[nodiscard]] const DslashLattice& lattice() const noexcept { return *lattice_; }
  [[nodiscard]] Team& team() const noexcept { return *team_; }

 private:
  void loop(const Target& target, std::int64_t first, std::int64_t last);

  const DslashLattice* lattice_;
  const DslashLinks<Link>* links_;
  Team* team_;
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
