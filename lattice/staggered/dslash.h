// The hopping term of staggered quarks on one rank: links of fat and long hops in one precision, and fields that are hopped.
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

// Links of every kind: first those of hops of one site, direction by direction, then those of three. A kind's links lie as
// [vector, ghosts too][row][column][re, im][lane].
template <class Link>
struct HopLinks {
  std::vector<Buffer<Link>> kinds;
  std::vector<double> factors;  // a link is its numbers times this
  Buffer<Link> stream;          // in place of `kinds`: as HopLoop has it
};

// The same links in another precision. In half precision the largest number of one length of hop is 32767, the same on all ranks. Collective.
HopLinks<float> to_single(const HopLinks<double>& links);
HopLinks<std::int16_t> to_half(const HopLinks<double>& links, const Group& group, int dims);

// What all fields on one lattice share.
struct HopLattice {
  // `links`: this rank's block in natural order, [site][direction][row][column], one such array for each length of hop, 1 and perhaps 3.
  // The geometry's width must be the longest. Collective.
  HopLattice(const Group& group, Geometry geometry, std::span<const std::span<const std::complex<double>>> links);

  [[nodiscard]] int kinds() const { return static_cast<int>(links.kinds.size()); }
  // The colour of this rank's block that is that colour of the whole lattice.
  [[nodiscard]] int local(int colour) const { return (colour + geometry.origin_colour(group.rank())) % 2; }
  [[nodiscard]] std::int64_t begin(int colour) const { return geometry.colour_begin(local(colour)); }
  [[nodiscard]] std::int64_t count(int colour) const { return geometry.colour_end(local(colour)) - begin(colour); }

  Group group;
  Geometry geometry;
  std::vector<std::int64_t> sites;
  std::vector<std::int32_t> neighbours;  // as HopLoop has them
  std::vector<std::int32_t> rotations;
  HopLinks<double> links;
};

// The links of such numbers of all ranks of this machine, kept once, over the size of the last cache.
[[nodiscard]] double links_over_cache(const HopLattice& lattice, std::size_t bytes_of_a_number);
// Whether links of such numbers are better kept twice, in the order of their use: where they are small beside the last cache, or so large that
// it does not hold them once, and there is plenty of memory.
[[nodiscard]] bool better_in_order(const HopLattice& lattice, std::size_t bytes_of_a_number);
template <class Link>
[[nodiscard]] HopLinks<Link> in_order_of_use(const HopLattice& lattice, const HopLinks<Link>& links);

struct HopCounters {
  double waited = 0;  // seconds in which faces are started and finished
  double flops = 0;
  double bytes = 0;
};

// Makes the exchange of a field's faces.
using MakeExchange = std::function<std::unique_ptr<FaceExchange>(const Geometry& geometry, std::int64_t element_bytes,
                                                                 std::span<std::byte> field)>;

struct HopOptions {
  int copies = 1;
  Codec codec = Codec::raw;    // of faces on their way
  bool plain = false;          // loops without the processor's vector instructions
  bool overlap = true;         // the interior is done while faces travel
  MakeExchange exchange = {};  // in place of plans
};

// A field of colour vectors, and the hopping term that reads it. The lattice, links and team must outlive it.
template <class Link, class Real>
class HopField {
 public:
  HopField(const HopLattice& lattice, const HopLinks<Link>& links, Team& team, const HopOptions& options = {});

  struct Target {
    Real* out = nullptr;  // of vectors from `begin` on
    std::int64_t begin = 0;
    double hop_factor = 1;
    const Real* own = nullptr;  // as `out`; adds own_factor times this
    double own_factor = 0;
    VectorSpace<Real>* products = nullptr;  // with `own`: <own, out> is added to its partial sums
  };
  // To the sites of this colour of the whole lattice, from the field's sites of the other colour. Collective.
  void hop(int colour, const Target& target);

  Field<Real> field;
  HopCounters counters;

  [[nodiscard]] const HopLattice& lattice() const noexcept { return *lattice_; }
  [[nodiscard]] Team& team() const noexcept { return *team_; }

 private:
  void loop(const Target& target, std::int64_t first, std::int64_t last);

  const HopLattice* lattice_;
  const HopLinks<Link>* links_;
  Team* team_;
  HopKernel<Link, Real> kernel_;
  HopLoop<Link, Real> pattern_;
  std::unique_ptr<FaceExchange> exchange_;
  bool overlap_;
};

// 4 m^2 - D D on the sites of one colour.
template <class Link, class Real>
class NormalOperator final : public LinearOperator<Real> {
 public:
  NormalOperator(HopField<Link, Real>& hops, Sums& sums, int colour, double mass);

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

  HopField<Link, Real>* hops_;
  VectorSpace<Real> space_;
  int colour_;
  double mass_;
};

extern template HopLinks<double> in_order_of_use(const HopLattice&, const HopLinks<double>&);
extern template HopLinks<float> in_order_of_use(const HopLattice&, const HopLinks<float>&);
extern template HopLinks<std::int16_t> in_order_of_use(const HopLattice&, const HopLinks<std::int16_t>&);
extern template class HopField<double, double>;
extern template class HopField<float, float>;
extern template class HopField<std::int16_t, float>;
extern template class NormalOperator<double, double>;
extern template class NormalOperator<float, float>;
extern template class NormalOperator<std::int16_t, float>;

}  // namespace onehop::lattice::detail
