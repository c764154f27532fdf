// The page of memory that every rank of a group shows to those who share its machine: its doorbell and whether it still lives.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "shared_memory.h"

namespace onehop::detail {

struct RankPage {
  // Writers look at this after each colour they store for the rank: how many of its threads sleep or are about to.
  alignas(128) std::atomic<std::uint32_t> sleeping;
  // The futex that they sleep on; grows with every ring.
  std::atomic<std::uint32_t> bell;
  // Set when the rank's group is closed in order; and the rank (plus one) that it saw die, so that others name the same.
  alignas(128) std::atomic<std::uint32_t> left;
  std::atomic<std::uint32_t> saw_lost;
};

struct PeerPage {
  RankPage* page = nullptr;
  SharedMemory memory;
  pid_t pid = 0;
  int pidfd = -1;  // becomes readable when the process ends; -1: own process or not watchable
  std::string host;
  std::string why_not;  // why its memory cannot be mapped here
};

// Wakes the rank.
void ring(RankPage& page) noexcept;

}  // namespace onehop::detail
