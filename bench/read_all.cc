#include "bench/read_all.h"

#include <algorithm>
#include <array>
#include <bit>

#include "bench/dslash.h"
#include "lattice/support/best_loop.h"
#include "src/base/clock.h"
#include "src/base/simd.h"

namespace onehop::bench {
namespace {

using lattice::detail::best_loop;

struct ReadArguments {
  const double* from = nullptr;
  std::size_t count = 0;
  double* sum = nullptr;
};

template <std::size_t Streams>
struct Read {
  static inline void run(const ReadArguments& arguments) {
    constexpr std::size_t line = 8;
    constexpr std::size_t lines = 8;  // at a time
    constexpr std::size_t of_each = lines / Streams * line;
    simd::Vector<double, line> sums[lines]{};
    const std::size_t part = arguments.count / Streams / of_each * of_each;
    for (std::size_t i = 0; i < part; i += of_each) {
      for (std::size_t s = 0; s < lines; ++s) {
        sums[s] += simd::load<simd::Vector<double, line>>(arguments.from + s % Streams * part + i + s / Streams * line);
      }
    }
    double total = 0;
    for (const auto& sum : sums) {
      for (std::size_t i = 0; i < line; ++i) total += sum[i];
    }
    *arguments.sum = total;
  }
};

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

}  // namespace

double read_all(const double* from, std::size_t count, int streams) {
  static const std::array loops{best_loop<Read<1>, ReadArguments>(), best_loop<Read<2>, ReadArguments>(),
                                best_loop<Read<4>, ReadArguments>(), best_loop<Read<8>, ReadArguments>()};
  double sum = 0;
  loops[static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(streams)))]({from, count, &sum});
  return sum;
}

Reader::Reader(std::int64_t bytes, const base::ThreadPool& pool)
    : memory_(static_cast<std::size_t>(bytes) / sizeof(double)), pool_(&pool) {
  double best = 0;
  int found = streams_;
  for (int attempt = 0; attempt < 3; ++attempt) {
    for (const int streams : {1, 2, 4, 8}) {
      streams_ = streams;
      const double begin = base::steady_seconds();
      read();
      const double seconds = base::steady_seconds() - begin;
      if (best > 0 && seconds >= best) continue;
      best = seconds;
      found = streams;
    }
  }
  streams_ = found;
}

void Reader::read() {
  pool_->run([&](int thread) {
    const auto [first, last] = pool_->part(0, static_cast<std::int64_t>(memory_.size()), thread);
    sum_ = read_all(memory_.data() + first, static_cast<std::size_t>(last - first), streams_);
  });
}

double peak_gflops(bool single) { return single ? peak<float, 16>() : peak<double, 8>(); }

}  // namespace onehop::bench
