// A few threads that do short loops together: those of a rank that has more than one core.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

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

  // body(0) here, the others on the further threads; returns when all are done. Bodies must not throw. A thread that has nothing
  // to do looks for work for some microseconds before it sleeps.
  void run(const std::function<void(int)>& body);

  // The part of [first, last) that is this thread's: as even as can be, the same for the same size of team.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> part(std::int64_t first, std::int64_t last, int thread) const {
    const std::int64_t count = last - first;
    return {first + count * thread / threads_, first + count * (thread + 1) / threads_};
  }

 private:
  class Worker;
  int threads_;
  std::unique_ptr<Worker[]> workers_;
};

}  // namespace onehop::lattice::detail
