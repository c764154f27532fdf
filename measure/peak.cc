#include "measure/peak.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "lattice/support/best_loop.h"
#include "src/base/clock.h"
#include "src/base/cpu.h"
#include "src/base/simd.h"

namespace onehop::measure {
namespace {

using lattice::detail::best_loop;

template <class Real>
struct PeakArguments {
  std::int64_t times = 0;
  Real* values = nullptr;  // a factor, an addend, and a result
};

template <class Real, int Count>
struct Peak {
  static constexpr int chains = 12;  // as many as hide the time of one step
  static inline void run(const PeakArguments<Real>& arguments) {
    // All different: the compiler would compute equal chains once.
    simd::Vector<Real, Count> sums[chains];
    for (int c = 0; c < chains; ++c) sums[c] = simd::all<simd::Vector<Real, Count>>(static_cast<Real>(c));
    const simd::Vector<Real, Count> factor = simd::all<simd::Vector<Real, Count>>(arguments.values[0]);
    const simd::Vector<Real, Count> addend = simd::all<simd::Vector<Real, Count>>(arguments.values[1]);
    for (std::int64_t i = 0; i < arguments.times; ++i) {
      for (auto& sum : sums) sum = sum * factor + addend;
    }
    simd::Vector<Real, Count> total{};
    for (const auto& sum : sums) total += sum;
    arguments.values[2] = total[0];
  }
};

template <class Real, int Count>
double peak() {
  constexpr std::int64_t times = 200000;
  std::array<Real, 3> values{static_cast<Real>(0.5), static_cast<Real>(0.25), 0};
  const auto loop = best_loop<Peak<Real, Count>, PeakArguments<Real>>();
  double best = 0;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const double begin = base::steady_seconds();
    loop({times, values.data()});
    const double seconds = base::steady_seconds() - begin;
    best = std::max(best, 2.0 * Count * Peak<Real, Count>::chains * static_cast<double>(times) / seconds * 1e-9);
  }
  return best;
}

// Vectors have the length of the registers: the compiler would keep longer ones in memory.
template <class Real>
double peak_of_level() {
  switch (cpu::level()) {
    case cpu::Level::avx512:
      return peak<Real, 64 / sizeof(Real)>();
    case cpu::Level::avx2:
      return peak<Real, 32 / sizeof(Real)>();
    default:
      return peak<Real, 16 / sizeof(Real)>();
  }
}

}  // namespace

double peak_gflops(bool single) { return single ? peak_of_level<float>() : peak_of_level<double>(); }

}  // namespace onehop::measure
