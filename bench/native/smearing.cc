// `onehop bench smearing`: the fat and long links of staggered quarks from a gauge field's links.
#include <algorithm>
#include <atomic>
#include <utility>

#include "bench/native/bench.h"
#include "bench/native/read_all.h"
#include "lattice/gauge/matrix_functions.h"
#include "onehop/lattice/gauge.h"
#include "onehop/lattice/smearing.h"
#include "src/base/thread_count.h"
#include "src/base/thread_pool.h"

namespace onehop::bench {
namespace {

using lattice::Gauge;
using lattice::PathWeights;
using lattice::detail::Buffer;

constexpr double link_bytes = 4.0 * 18 * sizeof(double);  // per site

// Scalar code on a periodic lattice: one site after the other, each path by itself.
template <class Number>
class Scalar {
  using Matrix = lattice::su3::Matrix<Number>;
  using Field = std::vector<Matrix>;
  using FourFields = std::array<Field, 4>;

 public:
  Scalar(std::span<const std::int64_t> extents, std::span<const std::complex<double>> links) {
    std::int64_t stride = 1;
    const auto sites = static_cast<std::int64_t>(links.size() / 36);
    for (std::size_t mu = 0; mu < 4; ++mu) {
      for (std::int64_t site = 0; site < sites; ++site) {
        const std::int64_t at = site / stride % extents[mu];
        up_[mu].push_back(static_cast<std::size_t>(site + (at + 1 == extents[mu] ? 1 - extents[mu] : 1) * stride));
        down_[mu].push_back(static_cast<std::size_t>(site + (at == 0 ? extents[mu] - 1 : -1) * stride));
        links_[mu].push_back(lattice::detail::converted<Number>(
            lattice::su3::load(&links[(static_cast<std::size_t>(site) * 4 + mu) * 9])));
      }
      stride *= extents[mu];
      for (FourFields* fields : {&fat_, &long_links_}) (*fields)[mu].resize(links_[mu].size());
    }
    for (Field* field : {&three_, &five_}) field->resize(links_[0].size());
  }

  void fat_and_long(const PathWeights& weights) { fat_and_long(links_, weights); }
  void hisq() {
    FourFields unitary = links_;
    for (std::size_t mu = 0; mu < 4; ++mu) {
      fat(links_, mu, lattice::fat7_weights(), unitary[mu]);
      for (Matrix& m : unitary[mu]) {
        const auto nearest = lattice::detail::nearest_unitary(lattice::detail::converted<double>(m));
        m = lattice::detail::converted<Number>(nearest);
      }
    }
    fat_and_long(unitary, lattice::hisq_second_weights());
  }

 private:
  void fat_and_long(const FourFields& links, const PathWeights& weights) {
    for (std::size_t mu = 0; mu < 4; ++mu) {
      fat(links, mu, weights, fat_[mu]);
      if (weights.long_links == 0) continue;
      for (std::size_t x = 0; x < links[mu].size(); ++x) {
        const std::size_t next = up_[mu][x];
        long_links_[mu][x] =
            static_cast<Number>(weights.long_links) * (links[mu][x] * links[mu][next] * links[mu][up_[mu][next]]);
      }
    }
  }
  // Adds `weight` times the staples around `what` to `sum`, and stores the staples in `made` unless it is null.
  void staple(const FourFields& links, std::size_t mu, std::size_t nu, const Field& what, double weight, Field& sum,
              Field* made) const {
    const Field& side = links[nu];
    for (std::size_t x = 0; x < side.size(); ++x) {
      const std::size_t low = down_[nu][x];
      const Matrix both = times_adjoint(side[x] * what[up_[nu][x]], side[up_[mu][x]]) +
                          adjoint_times(side[low], what[low]) * side[up_[mu][low]];
      if (made != nullptr) (*made)[x] = both;
      sum[x] = sum[x] + static_cast<Number>(weight) * both;
    }
  }
  void fat(const FourFields& links, std::size_t mu, const PathWeights& weights, Field& sum) {
    const auto own = static_cast<Number>(weights.one - 6 * weights.lepage);
    for (std::size_t x = 0; x < sum.size(); ++x) sum[x] = own * links[mu][x];
    for (std::size_t nu = 0; nu < 4; ++nu) {
      if (nu == mu) continue;
      staple(links, mu, nu, links[mu], weights.three, sum, &three_);
      if (weights.lepage != 0) staple(links, mu, nu, three_, weights.lepage, sum, nullptr);
      for (std::size_t rho = 0; rho < 4; ++rho) {
        if (rho == mu || rho == nu) continue;
        staple(links, mu, rho, three_, weights.five, sum, &five_);
        staple(links, mu, 6 - mu - nu - rho, five_, weights.seven, sum, nullptr);
      }
    }
  }

  std::array<std::vector<std::size_t>, 4> up_, down_;
  FourFields links_, fat_, long_links_;
  Field three_, five_;
};

enum class SmearingKind { fat7, asqtad, hisq };
struct SmearingOptions {
  Effort effort;
  Extents extents{};  // of the whole lattice
  SmearingKind kind = SmearingKind::hisq;
  bool single = false;  // single-precision arithmetic
};

// MILC counts 61632 flop per site for every level of fat links, whatever their paths, and 1804 for the long links.
LatticeWork work_of(const SmearingOptions& options, int ranks) {
  const double sites = sites_of_rank(options.extents, ranks);
  constexpr double level = 61632;
  constexpr double straight = 1804;
  if (options.kind == SmearingKind::fat7) return {sites * level, sites * 2 * link_bytes};
  if (options.kind == SmearingKind::asqtad) return {sites * (level + straight), sites * 3 * link_bytes};
  return {sites * (2 * level + straight), sites * 4 * link_bytes};
}

template <class Number>
std::vector<Samples> measured(const Group& group, const SmearingOptions& options) {
  Gauge gauge(group, {options.extents.begin(), options.extents.end()}, {1, 1, 1, group.size()});
  for (std::uint32_t sweep = 0; sweep < 2; ++sweep) gauge.heat_bath(6, 1, sweep);
  const bool hisq = options.kind == SmearingKind::hisq;
  const PathWeights weights =
      options.kind == SmearingKind::asqtad ? lattice::asqtad_weights() : lattice::fat7_weights();
  const auto ours = [&] {
    const auto precision = options.single ? lattice::Precision::single : lattice::Precision::double_;
    if (hisq) {
      (void)lattice::hisq_links(gauge, 0, precision);
    } else {
      (void)lattice::fat_links(gauge, weights, precision);
    }
  };
  Scalar<Number> scalar(gauge.geometry().block(), gauge.links());
  const auto by_site = [&] { hisq ? scalar.hisq() : scalar.fat_and_long(weights); };

  base::ThreadPool pool(base::thread_count(0, group));
  const auto sites = static_cast<std::size_t>(gauge.geometry().sites());
  const auto moved = static_cast<std::size_t>(work_of(options, group.size()).bytes / sizeof(double));
  const Buffer<double> links(sites * 72);
  Buffer<double> made(moved - links.size());
  std::atomic<double> sink{0};
  const auto move = [&](int thread) {
    const auto [first, last] = pool.part(0, static_cast<std::int64_t>(links.size()), thread);
    sink = read_all(links.data() + first, static_cast<std::size_t>(last - first));
    const auto [from, to] = pool.part(0, static_cast<std::int64_t>(made.size()), thread);
    std::fill(made.data() + from, made.data() + to, sink.load());
  };

  Arena arena(group);
  return run_rounds(
      arena,
      {repeated("onehop", Role::ours, ours), repeated("scalar code", Role::variant, by_site),
       repeated("speed of light: reading and writing the links once", Role::speed_of_light, [&] { pool.run(move); })},
      options.effort);
}

}  // namespace

// One call of fat_links or hisq_links, including its allocations and preparations ("onehop"), and code for one site at
// a time on a lattice of this rank's block ("scalar code"). The speed of light is the time to read the links and write
// the result once, with as many threads.
void bind_smearing(nb::module_& module) {
  module.def(
      "smearing",
      [](const Group& group, const Extents& extents, int kind, bool single, const Effort& effort) {
        const SmearingOptions options{effort, extents, static_cast<SmearingKind>(kind), single};
        return with_work(work_of(options, group.size()),
                         [&] { return single ? measured<float>(group, options) : measured<double>(group, options); });
      },
      "group"_a, "extents"_a, "kind"_a, "single"_a, "effort"_a,
      "Measure the computation of fat and long links. Returns flop (as MILC counts them) and bytes of a rank, and the "
      "samples.");
}

}  // namespace onehop::bench
