#include "src/group/group_trace.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>

#include "src/base/clock.h"
#include "src/base/env.h"
#include "src/base/trace.h"
#include "src/group/group_state.h"

namespace onehop::detail {
namespace {

constexpr std::size_t rounds = 8;

double number_in(std::span<const std::byte> bytes, std::size_t at) {
  double value = 0;
  if (bytes.size() >= (at + 1) * sizeof value) std::memcpy(&value, bytes.data() + at * sizeof value, sizeof value);
  return value;
}

// How far this rank's steady clock is ahead of rank 0's: a rank receives what another one has sent before. The bounds
// of some rounds together are as close as the fastest of them. 0 if they allow it, as on one machine.
double clock_ahead(GroupState& group) {
  std::array<double, rounds> received{};
  std::array<double, rounds> own_sent{};
  std::array<double, rounds> first_sent{};
  for (std::size_t k = 0; k < rounds; ++k) {
    own_sent[k] = base::steady_seconds();
    const Gathered all = group.bootstrap->allgather(std::as_bytes(std::span(own_sent).subspan(k, 1)));
    received[k] = base::steady_seconds();
    first_sent[k] = number_in(all[0], 0);
  }
  const Gathered all = group.bootstrap->allgather(std::as_bytes(std::span(received)));
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < rounds; ++k) {
    least = std::max(least, own_sent[k] - number_in(all[0], k));
    most = std::min(most, received[k] - first_sent[k]);
  }
  return least <= 0 && most >= 0 ? 0 : (least + most) / 2;
}

// Whether a launcher has started several ranks, of which a group of one is a part.
bool is_one_of_several() {
  const auto several = [](const char* name) { return env::text(name).value_or("1") != "1"; };
  return std::ranges::any_of(std::array{"ONEHOP_RANKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, several);
}

}  // namespace

void begin_trace(GroupState& world, bool all) {
  const double ahead = all && world.spans_hosts ? clock_ahead(world) : 0;
  if (!trace::is_wanted() || (world.size == 1 && is_one_of_several())) return;
  trace::begin(world.rank, world.size, *world.pages[static_cast<std::size_t>(world.rank)].machine, ahead);
}

void trace_sent(const Group& group, int rank, std::int64_t bytes) {
  trace::sent(group.state()->world_rank(rank), bytes);
}

}  // namespace onehop::detail
