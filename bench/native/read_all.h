// The speed of light for code that reads more than it computes: reading the same bytes and nothing else.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lattice/geometry/field.h"
#include "onehop/group.h"
#include "src/base/thread_pool.h"

namespace onehop::bench {

// Reads `count` numbers in 1, 2, 4 or 8 simultaneous streams as fast as possible. Returns their sum.
[[nodiscard]] double read_all(const double* from, std::size_t count, int streams = 8);

// Memory that all threads of a rank read, with the fastest number of streams.
class Reader {
 public:
  // The pool must outlive it.
  Reader(std::int64_t bytes, const base::ThreadPool& pool);

  [[nodiscard]] std::int64_t bytes() const noexcept {
    return static_cast<std::int64_t>(memory_.size() * sizeof(double));
  }
  void read();

 private:
  lattice::detail::Buffer<double> memory_;
  const base::ThreadPool* pool_;
  int streams_ = 8;  // per thread
  std::atomic<double> sum_{0};
};

// The read bandwidth of memory, or of the caches that hold the data, for all threads of a rank.
class Bandwidth {
 public:
  // Reads `bytes` bytes on each rank with `threads` threads per rank (0: one per core of the rank). Collective.
  Bandwidth(const Group& group, std::int64_t bytes, int threads);

  // Returns the GB/s of this rank while all ranks read their bytes `times` times. Collective.
  [[nodiscard]] double measure(int times);

 private:
  Group group_;
  base::ThreadPool pool_;
  Reader reader_;
};

}  // namespace onehop::bench
