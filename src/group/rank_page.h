// The page that every rank of a group shares with the ranks of its machine. It holds the rank's doorbell and its state.
// A peer may write anything into its own page, so readers check every number.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/group/shared_memory.h"
#include "src/group/wait_record.h"

namespace onehop::detail {

// The name of a network interface, of at most 15 characters; empty: none.
class DeviceName {
 public:
  void write(std::string_view name) noexcept;
  [[nodiscard]] std::string read() const;

 private:
  std::array<std::atomic<std::uint64_t>, 2> words_;
};

struct RankPage {
  // Number of the rank's threads that sleep or are about to. Writers read it after each flag that they store for the
  // rank.
  alignas(128) std::atomic<std::uint32_t> sleeping;
  // The futex on which they sleep. Every ring increments it.
  std::atomic<std::uint32_t> bell;
  // `left` is set when the rank has closed or aborted its group. `reported_lost` is the rank (plus one) that it saw
  // die, so that all ranks name the same one; it is the rank itself if that has aborted its group.
  alignas(128) std::atomic<std::uint32_t> left;
  std::atomic<std::uint32_t> reported_lost;
  // A random number that the rank announces, by which a peer recognises the page that it maps. Process and descriptor
  // numbers do not suffice if two machines look the same (copies of one virtual machine).
  std::uint64_t word;
  // The rank (plus one) that this process lost in any of its groups: it died, or closed its group while this rank still
  // waited for it. Peers read it once both are gone.
  std::atomic<std::uint32_t> missed;
  // The same for a rank of the world (plus one) that is not in this group.
  std::atomic<std::uint32_t> missed_elsewhere;
  // Set when the rank closes its group, or when its process is about to end, with a yet unknown exit status.
  std::atomic<std::uint32_t> leaving;
  // The rank (plus one) that did not answer within the time limit of a wait of this rank, which gave up.
  std::atomic<std::uint32_t> unanswered;
  // Bytes that the rank is about to allocate and that the system does not count as used yet.
  std::atomic<std::int64_t> about_to_take;

  // For `onehop status`, which recognises a page by `mark`, of which a new layout gets another value.
  static constexpr std::uint64_t status_mark = 0x32'73'70'6f'68'65'6e'6f;
  alignas(128) std::atomic<std::uint64_t> mark;
  std::atomic<std::uint64_t> group_word;  // `word` of rank 0 of the group; 0 until ranks know each other
  std::atomic<std::int32_t> rank;
  std::atomic<std::int32_t> size;
  std::atomic<std::uint64_t> steps;  // collective steps of the group that the rank has begun
  std::array<WaitRecord, 4> waits;   // further threads that wait at the same time are not shown
  // The network interfaces that this rank has found to be down between its host and another one; further ones are not
  // shown.
  std::array<DeviceName, 4> down;
};

// This rank's view of a peer.
struct PeerPage {
  SharedMemory memory;
  RankPage* page = nullptr;  // null: this rank cannot map its memory
  pid_t pid = 0;
  // Texts of the group (GroupState::texts), so that equal ones are one: the name of its machine, for messages, and what
  // identifies the machine.
  const std::string* machine = nullptr;
  const std::string* host = nullptr;
  std::string why_not;  // the reason if it cannot be mapped; empty if it is on another machine
};

// Shows a collective step of the group to `onehop status` while it lasts.
class ShownStep {
 public:
  explicit ShownStep(RankPage& page) noexcept;
  ~ShownStep();
  ShownStep(const ShownStep&) = delete;
  ShownStep& operator=(const ShownStep&) = delete;

 private:
  WaitRecord* record_ = nullptr;
};

// Notes that an interface is down, or works again. One thread at a time.
void note_device(RankPage& page, std::string_view device, bool works) noexcept;

// Wakes the sleeping threads of the rank.
void ring(RankPage& page) noexcept;

// Sleeps on this rank's bell for at most `seconds`, unless it has rung since `seen`.
void sleep_on(RankPage& page, std::uint32_t seen, double seconds) noexcept;

}  // namespace onehop::detail
