// The number of threads of a rank: the one that the caller asks for, else ONEHOP_THREADS, else the rank's share of its
// cores.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace onehop::base {

// The affinity mask of the calling thread. All cores of the machine if the system does not tell.
[[nodiscard]] cpu_set_t core_mask();

// `requested` if it is positive, else ONEHOP_THREADS, else the cores of `mask` divided among `sharing` processes, at
// least 1. Throws BadInput for a `requested` that is not 0 (all) to 1024, and for a wrong ONEHOP_THREADS.
[[nodiscard]] int thread_count(int requested, const cpu_set_t& mask, int sharing);

// The same for a process that shares its cores with no other.
[[nodiscard]] int thread_count(int requested);

// The same for a rank of a group (onehop::Group), which shares its cores with the ranks of its machine that have the
// same affinity mask. Collective, whatever the ranks ask for: programs pin their ranks after they have made the group
// (as `onehop bench` does), so the masks that ranks told each other then may be out of date.
template <typename Group>
[[nodiscard]] int thread_count(int requested, const Group& group) {
  const cpu_set_t mask = core_mask();
  int sharing = 1;
  if (group.size() > 1) {
    const auto masks = group.allgather(std::as_bytes(std::span(&mask, 1)));
    const auto is_same = [&](int rank) {
      return std::memcmp(masks[static_cast<std::size_t>(rank)].data(), &mask, sizeof mask) == 0;
    };
    sharing = static_cast<int>(std::ranges::count_if(group.local_ranks(), is_same));
  }
  return thread_count(requested, mask, sharing);
}

}  // namespace onehop::base
