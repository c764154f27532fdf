#include "quantum/simulator/shot_memory.h"

#include <array>
#include <span>

#include "onehop/error.h"
#include "src/base/one_size.h"
#include "src/base/text.h"

namespace onehop::quantum {
namespace {

constexpr double always_fits = 1 << 24;  // bytes of one rank; reading what is left takes longer than to use them

double bytes_of(const Wanted& wanted) { return static_cast<double>(wanted.count) * static_cast<double>(wanted.bytes); }

std::string counted(const Wanted& wanted) { return std::to_string(wanted.count) + " " + wanted.what; }

std::string size_text(double bytes) {
  constexpr double most = 1LL << 62;  // of bytes_text
  return base::bytes_text(static_cast<std::int64_t>(bytes < most ? bytes : most));
}

}  // namespace

void check_shots_fit(const Group& group, const Wanted& first, const Wanted& second) {
  const double needed = bytes_of(first) + bytes_of(second);
  if (needed < always_fits) return;
  const std::array<double, 2> mine{needed * static_cast<double>(group.local_ranks().size()),
                                   static_cast<double>(available_memory())};
  std::array<double, 2> worst{};
  for (const auto& theirs : base::values_of_all(group, mine)) {
    if (theirs[0] > theirs[1] && theirs[0] - theirs[1] > worst[0] - worst[1]) worst = theirs;
  }
  if (worst[0] == 0) return;
  const std::string found = counted(first) + (second.count > 0 ? " and " + counted(second) : "");
  throw BadInput("expected " + first.what + " that fit into the " + size_text(worst[1]) +
                 " of memory that a machine has left, found " + found + " that need " + size_text(worst[0]) +
                 " there; take fewer, and several runs with different seeds");
}

}  // namespace onehop::quantum
