// A `Plan` is a schedule bound to a group and to memory. Making it prepares everything: channels, packing lists, chunks;
// starting and finishing it only moves bytes: no allocation, no lock, and in shared memory no system call while nobody sleeps.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onehop/channel.h"
#include "onehop/group.h"
#include "onehop/schedule.h"

namespace onehop {

struct PlanOptions {
  TransportKind transport = TransportKind::automatic;
  int slots = 0;                 // per channel; 0: two (1 is single buffering)
  std::int64_t slot_bytes = 0;   // limit of one slot; 0: onehop chooses. Staging is slots * slot_bytes per channel.
  std::int64_t chunk_bytes = 0;  // 0: onehop chooses
};

// What a plan has moved since it was made; for one run equal to `count(schedule).ranks[rank]`.
struct PlanCounters {
  std::int64_t runs = 0;
  std::int64_t messages_sent = 0;
  std::int64_t messages_received = 0;
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  std::int64_t bytes_local = 0;
};

class Plan {
 public:
  // Collective over the group. `schedule` is the whole or this rank's part of it; `arrays[i]` is the memory of the
  // schedule's array i on this rank and must outlive the plan. Throws BadInput (ranks, sizes, arrays too short), Mismatch where the
  // ranks' schedules do not fit together, Error where memory does not suffice.
  Plan(const Group& group, const Schedule& schedule, std::span<const std::span<std::byte>> arrays,
       const PlanOptions& options = {});
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;
  ~Plan();

  // Begins a run and never waits: packs and sends the first round as far as slots are free. Until finish() returns the
  // slices that are read must not be written, and those that are written must not be touched.
  void start();

  // Completes the run: sends the rest, receives everything, goes through the other rounds. Throws PeerLost, Timeout; the plan
  // cannot be used after that.
  void finish();

  // Moves on what can be moved without waiting; true if finish() would return at once. Throws PeerLost, though not at once.
  [[nodiscard]] bool test();

  void run() {
    start();
    finish();
  }

  [[nodiscard]] const PlanCounters& counters() const noexcept;
  // Bytes of staging that this rank holds for the plan's incoming messages.
  [[nodiscard]] std::int64_t staging_bytes() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop
