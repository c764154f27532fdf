// What memory, or the caches that hold so much, brings to all threads of a rank that only read.
#pragma once

#include <cstdint>
#include <memory>

#include "onehop/group.h"

namespace onehop::bench {

class Bandwidth {
 public:
  // Of so many bytes a rank. `threads`: of a rank; 0: as many as it has cores. Collective.
  Bandwidth(const Group& group, std::int64_t bytes, int threads);
  ~Bandwidth();
  Bandwidth(const Bandwidth&) = delete;
  Bandwidth& operator=(const Bandwidth&) = delete;

  // GB/s of this rank while all ranks read everything so many times. Collective.
  [[nodiscard]] double measure(int times);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::bench
