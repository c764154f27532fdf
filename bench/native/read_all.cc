#include "bench/native/read_all.h"

#include <array>
#include <bit>

#include "lattice/support/best_loop.h"
#include "src/base/clock.h"
#include "src/base/simd.h"
#include "src/base/thread_count.h"

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

Bandwidth::Bandwidth(const Group& group, std::int64_t bytes, int threads)
    : group_(group), pool_(base::thread_count(threads, group)), reader_(bytes, pool_) {}

double Bandwidth::measure(int times) {
  reader_.read();  // fills the caches, if they hold that much
  group_.barrier();
  const double begin = base::steady_seconds();
  for (int i = 0; i < times; ++i) reader_.read();
  const double seconds = base::steady_seconds() - begin;
  group_.barrier();
  return static_cast<double>(reader_.bytes()) * times / seconds * 1e-9;
}

}  // namespace onehop::bench
