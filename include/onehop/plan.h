// A `Plan` is a schedule bound to a group and to memory. The constructor prepares everything: channels, packing lists,
// chunks. A run only moves bytes: it allocates nothing, takes no lock, and in shared memory makes no system call unless
// a rank sleeps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onehop/channel.h"
#include "onehop/group.h"
#include "onehop/rail_assignment.h"
#include "onehop/schedule.h"

namespace onehop {

struct PlanOptions {
  TransportKind transport = TransportKind::automatic;
  int slots = 0;                 // per channel; 0: two (1 is single buffering)
  std::int64_t slot_bytes = 0;   // limit of one slot; 0: onehop chooses. Staging is slots * slot_bytes per channel.
  std::int64_t chunk_bytes = 0;  // 0: onehop chooses
  // Whether senders write straight into the receiver's array where the ranks share it (Group::allocate).
  bool direct_puts = true;
  // Which network interface carries each message, or each piece of it, where the transport uses several (UCX with
  // active messages): one list for each round. Without lists, and for messages that are not listed: each part of a
  // message takes the interface that has been given the fewest bytes for its speed. Where one interface or none carries
  // messages, the pieces of the lists are checked, not their rails, and the lists change nothing.
  std::optional<RailLists> rails = std::nullopt;
  // Whether to refuse every schedule that `verify` refuses (verify.h). ONEHOP_VERIFY=1 in the environment does so for
  // all plans. Otherwise a plan checks less: docs/reference/plan.md, "Making a plan".
  bool verify = false;
};

// Messages and bytes that a plan has moved since it was made. For one run they equal `count(schedule).ranks[rank]`.
struct PlanCounters {
  std::int64_t runs = 0;
  std::int64_t messages_sent = 0;
  std::int64_t messages_received = 0;
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  std::int64_t bytes_local = 0;
};

// One end of a channel of a plan.
struct PlanChannel {
  int peer = 0;
  bool sends = false;
  std::int64_t bytes = 0;  // of the longest message
  int slots = 0;
  std::int64_t slot_bytes = 0;
  std::int64_t chunk_bytes = 0;
  // For a sender: the best kind of stores so far, and whether the sender tries others while it runs (tuning.h).
  StoreKind stores = StoreKind::plain;
  bool adaptive = false;
  // For a sender: fragments that it has written straight into the receiver's array, and the best kind of stores for
  // them so far.
  std::int64_t direct_puts = 0;
  StoreKind direct_stores = StoreKind::plain;
  // For a sender: among how many network interfaces its bytes are divided, and whether PlanOptions::rails does that for
  // one of its messages.
  int rails = 1;
  bool rails_assigned = false;
};

class Plan {
 public:
  // Collective over the group. `schedule` is the whole schedule, or this rank's part of it. `arrays[i]` is the memory
  // of array i of the schedule on this rank; it must outlive the plan. Throws BadInput for wrong ranks or sizes, for
  // arrays that are too short and with PlanOptions::verify for what `verify` refuses, Mismatch if the schedules of two
  // ranks disagree, Error if memory is short.
  Plan(const Group& group, const Schedule& schedule, std::span<const std::span<std::byte>> arrays,
       const PlanOptions& options = {});
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;
  ~Plan();

  // Starts a run without waiting: packs and sends the first round as far as slots are free. Until finish() returns, do
  // not write the slices that the schedule reads, and do not access the slices that it writes. ONEHOP_GUARD=1 detects
  // a program that does.
  void start();

  // Completes the run: sends the rest, receives everything, and runs the remaining rounds. Throws BadInput without a
  // start(), PeerLost, Timeout; after the last two the plan cannot be used again. With ONEHOP_GUARD=1 throws BadInput
  // at the end of a run during which the program touched what it may not.
  void finish();

  // Moves whatever can be moved without waiting. Returns true if the run is complete. Throws PeerLost, which
  // may come only some calls after the loss.
  [[nodiscard]] bool test();

  // start() and finish(). A sender that may write into the receiver's array waits here, for about as long as packing
  // would take, until the receiver has started too.
  void run();

  [[nodiscard]] const PlanCounters& counters() const noexcept;
  // Bytes of staging memory that this rank holds for the incoming messages of the plan.
  [[nodiscard]] std::int64_t staging_bytes() const noexcept;
  // This rank's ends of channels, senders first.
  [[nodiscard]] std::vector<PlanChannel> channels() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop
