// rankmap_lib: no map of ranks to a network, and network interfaces for the directions of a lattice.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compat/rdma_comlib.h"
#include "compat/rdma_comlib/world.h"
#include "compat/shared/boundary.h"
#include "compat/shared/memory.h"
#include "onehop/error.h"
#include "onehop/machine/rails.h"

using onehop::BadInput;
using onehop::compat::checked_span;
using onehop::compat::guarded;
using namespace onehop::compat::rdma_comlib;

namespace {

constexpr int network_interfaces = 6;

int directions = 8;  // of the program's lattice

// Chooses the interfaces of this rank's directions. Every rank of the host assigns the messages of all of them, and
// finds the same assignment.
void balance_interfaces(std::span<int> tni_list, std::span<const std::size_t> sizes) {
  std::vector<onehop::RailMessage> messages;
  for (const int rank : ranks_of_host()) {
    for (std::size_t direction = 0; direction < sizes.size(); ++direction) {
      const std::size_t size = sizes[direction];
      if (!std::in_range<std::int64_t>(size)) {
        throw BadInput("expected sizes below 2^63 bytes, found " + std::to_string(size));
      }
      messages.push_back({rank, static_cast<int>(direction), static_cast<std::int64_t>(size)});
    }
  }
  const std::vector<double> speeds(network_interfaces, 1.0);
  for (const onehop::RailAssignment& one : assign_rails(messages, {.speeds = speeds}).assignments) {
    if (one.from == own_rank()) tni_list[static_cast<std::size_t>(one.to)] = one.rail;
  }
}

}  // namespace

ONEHOP_COMPAT_API int rankmap_lib_set_rankmap2d() {
  directions = 4;
  return -1;
}

ONEHOP_COMPAT_API int rankmap_lib_set_rankmap4d() {
  directions = 8;
  return -1;
}

ONEHOP_COMPAT_API int rankmap_lib_get_rankmap(int* /*coordinates*/, int* /*neighbours*/, int* /*sizes*/) { return -1; }

// Without sizes, all messages count as equal.
ONEHOP_COMPAT_API int rankmap_lib_get_tni_list(int* tni_list, const int* /*flag*/) {
  return guarded("rankmap_lib_get_tni_list", [&] {
    const std::vector<std::size_t> equal(static_cast<std::size_t>(directions), 1);
    balance_interfaces(checked_span(tni_list, directions), equal);
    return 0;
  });
}

ONEHOP_COMPAT_API int rankmap_lib_get_balanced_tni_list(int* tni_list, const size_t* sizes) {
  return guarded("rankmap_lib_get_balanced_tni_list", [&] {
    balance_interfaces(checked_span(tni_list, directions), checked_span(sizes, directions));
    return 0;
  });
}
