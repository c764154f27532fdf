// A few threads that do short loops together: those of a rank that has more than one core.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "onehop/forks.h"
#include "onehop/group.h"

namespace onehop::lattice::detail {

// How many threads a rank of this group has: ONEHOP_THREADS, or its cores shared with the ranks that may use the same ones. Collective.
[[nodiscard]] int team_size(const Group& group);

class Team {
 public:
  explicit Team(int threads);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  [[nodiscard]] int size() const noexcept { return threads_; }

  // Runs body(0) on the calling thread and body(1) ... on the others; returns when all are done. The first exception of a body is
  // thrown here. A thread that has nothing to do polls for some microseconds before it sleeps. A forked child has no threads of its
  // parent and runs all bodies by itself.
  void run(const std::function<void(int)>& body);

  // The part of [first, last) that is this thread's: as even as can be, the same for the same size of team.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> part(std::int64_t first, std::int64_t last, int thread) const {
    const std::int64_t count = last - first;
    return {first + count * thread / threads_, first + count * (thread + 1) / threads_};
  }

 private:
  class Worker;
  [[nodiscard]] bool is_parents() const noexcept;

  int threads_;
  std::uint32_t forks_;  // when the threads were started
  std::unique_ptr<Worker[]> workers_;
};

}  // namespace onehop::lattice::detail
