// The page of memory that every rank of a group shows to those who share its machine: its doorbell, and whether it still lives.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "src/group/shared_memory.h"

namespace onehop::detail {

struct RankPage {
  // Writers look at this after each colour that they store for the rank: how many of its threads sleep or are about to.
  alignas(128) std::atomic<std::uint32_t> sleeping;
  // The futex that they sleep on; grows with every ring.
  std::atomic<std::uint32_t> bell;
  // Set when the rank has closed its group; and the rank (plus one) that it saw die, so that all name the same one.
  alignas(128) std::atomic<std::uint32_t> left;
  std::atomic<std::uint32_t> saw_lost;
  // Random, and told to all: a rank that maps a page finds out whether it is the one it was told of. Process and descriptor
  // numbers do not say so where two machines cannot be told apart (copies of one virtual machine).
  std::uint64_t word;
  // The rank (plus one) that had closed its group while this one still waited for it. It counts once this one is gone, too.
  std::atomic<std::uint32_t> missed;
  // Bytes that the rank is about to take of its machine's memory, and that the system does not count yet.
  std::atomic<std::int64_t> about_to_take;
};

// How this rank sees a peer.
struct PeerPage {
  SharedMemory memory;
  RankPage* page = nullptr;  // null: its memory cannot be mapped here
  pid_t pid = 0;
  std::string host;
  std::string why_not;  // why it cannot, and what to do
};

// Wakes the rank's sleepers.
void ring(RankPage& page) noexcept;

// Sleeps on the own bell unless it has rung since `seen`, for at most `seconds`.
void sleep_on(RankPage& page, std::uint32_t seen, double seconds) noexcept;

}  // namespace onehop::detail
