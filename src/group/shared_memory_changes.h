// Counts how often this process has made shared memory or unmapped memory that it had made.
#pragma once

#include <atomic>
#include <cstdint>

namespace onehop::detail {

inline constinit std::atomic<std::uint64_t> shared_memory_changes{1};

}  // namespace onehop::detail
