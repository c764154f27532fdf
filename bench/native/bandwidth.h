// The read bandwidth of memory, or of the caches that hold the data, for all threads of a rank.
#pragma once

#include <cstdint>
#include <memory>

#include "onehop/group.h"

namespace onehop::bench {

class Bandwidth {
 public:
  // Reads `bytes` bytes on each rank with `threads` threads per rank (0: one per core of the rank). Collective.
  Bandwidth(const Group& group, std::int64_t bytes, int threads);
  ~Bandwidth();
  Bandwidth(const Bandwidth&) = delete;
  Bandwidth& operator=(const Bandwidth&) = delete;

  // Returns the GB/s of this rank while all ranks read their bytes `times` times. Collective.
  [[nodiscard]] double measure(int times);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::bench
