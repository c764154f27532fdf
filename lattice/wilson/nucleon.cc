#include "onehop/lattice/nucleon.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "lattice/support/best_loop.h"
#include "onehop/error.h"
#include "onehop/lattice/su3.h"

namespace onehop::lattice {

namespace {

constexpr int numbers = 144;  // of a propagator
constexpr int lanes = 8;
using Real = simd::Vector<double, lanes>;
using Number = su3::Complex<Real>;

struct Spins {
  Number e[4][4];  // spin, source spin
};

struct Contraction {
  const double* columns;
  std::int64_t sites;
  double parity;
  std::complex<double>* found;
};

struct NucleonLoop {
  static inline void run(const Contraction& all) {
    for (std::int64_t first = 0; first < all.sites; first += lanes) {
      Spins quark[3][3];  // colour, source colour
      load(all, first, quark);
      Number total{};
      for (int k = 0; k < 3; ++k) {
        for (int c = 0; c < 3; ++c) {
          const int i = (k + 1) % 3, j = (k + 2) % 3, a = (c + 1) % 3, b = (c + 2) % 3;
          add(quark[k][c], quark[i][a], quark[j][b], quark[i][b], quark[j][a], Real{} + all.parity, total);
        }
      }
      const auto last = std::min<std::int64_t>(lanes, all.sites - first);
      for (std::int64_t lane = 0; lane < last; ++lane) all.found[first + lane] = {total.re[lane], total.im[lane]};
    }
  }

  // Lanes behind the last site repeat it.
  static inline void load(const Contraction& all, std::int64_t first, Spins (&quark)[3][3]) {
    for (int column = 0; column < 12; ++column) {
      for (int row = 0; row < 12; ++row) {
        Number& number = quark[row % 3][column % 3].e[row / 3][column / 3];
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
          const std::int64_t site = std::min(first + lane, all.sites - 1);
          const double* from = all.columns + 2 * ((column * all.sites + site) * 12 + row);
          number.re[lane] = from[0];
          number.im[lane] = from[1];
        }
      }
    }
  }

  // Adds tr(P q) tr(D) + tr(P q D). The diquark D is that of q_ia and q_jb less that of q_ib and q_ja, with i and j
  // exchanged as well. C gamma_5 = gamma_x gamma_z exchanges the spins 0 and 1, and 2 and 3, with a sign, so that D_st
  // = +-F_rt with r = s ^ 1, and F is antisymmetric.
  static inline void add(const Spins& q, const Spins& ia, const Spins& jb, const Spins& ib, const Spins& ja,
                         const Real& parity, Number& total) {
    const auto projected = [&](int s, int t) { return q.e[s][t] + parity * q.e[s ^ 2][t]; };  // 2 P q
    Number trace{}, diquark{}, product{};
    for (int s = 0; s < 4; ++s) {
      trace = trace + projected(s, s);
      for (int t = s + 1; t < 4; ++t) {
        Number f{};
        for (int m = 0; m < 4; ++m) {
          const int n = m ^ 1;
          const Number term =
              (ia.e[m][s] * jb.e[n][t] - ib.e[m][s] * ja.e[n][t]) - (ia.e[m][t] * jb.e[n][s] - ib.e[m][t] * ja.e[n][s]);
          f = m % 2 == 0 ? f - term : f + term;
        }
        const Number here = projected(s, t ^ 1), there = projected(t, s ^ 1);
        const Number both = (s + t) % 2 == 0 ? here - there : here + there;
        product = t % 2 == 0 ? product + f * both : product - f * both;
        if (t == (s ^ 1)) diquark = diquark - f;
      }
    }
    total = total + (trace * diquark + (Real{} + 0.5) * product);
  }
};

}  // namespace

std::vector<std::complex<double>> nucleon(std::span<const std::complex<double>> columns, int parity) {
  if (columns.empty() || columns.size() % numbers != 0)
    throw BadInput("nucleon: expected propagators of " + std::to_string(numbers) + " numbers for each site, found " +
                   std::to_string(columns.size()) + " numbers");
  std::vector<std::complex<double>> found(columns.size() / numbers);
  const Contraction all{reinterpret_cast<const double*>(columns.data()), static_cast<std::int64_t>(found.size()),
                        static_cast<double>(parity), found.data()};
  detail::best_loop<NucleonLoop, Contraction>()(all);
  return found;
}

}  // namespace onehop::lattice
