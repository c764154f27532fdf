// The number of forks between the first process of a rank and this one.
#pragma once

#include <atomic>
#include <cstdint>

namespace onehop::detail {

// A channel belongs to the process that opened it. A forked child finds another number here and does not use the
// channel.
extern constinit std::atomic<std::uint32_t> forks;

}  // namespace onehop::detail
