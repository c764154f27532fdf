// The number of forks between the first process of a rank and this one.
#pragma once

#include <atomic>
#include <cstdint>

namespace onehop::detail {

// The ends of channels belong to the process that opened them. A forked child finds another number here and uses none of them.
extern constinit std::atomic<std::uint32_t> forks;

}  // namespace onehop::detail
