// Exchanges in place between arrays in shared memory, without staging and without a copy. The elements of a permutation
// of index bits move in cycles of places on different ranks (`steps_of`, bit_permutation.h). All ranks of a cycle
// signal that they are ready; each then moves its share of the cycle's elements in the arrays of all ranks, and signals
// when it is done.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "onehop/channel.h"
#include "onehop/schedule.h"
#include "src/group/group_state.h"
#include "src/group/shared_memory.h"
#include "src/plan/direct/line_exchange.h"
#include "src/plan/direct/run_exchange.h"

namespace onehop::detail {

// One place of a cycle: the elements of a rank's array whose moving local bits have the pattern of `first`, which is
// the number of the first of them.
struct CyclePlace {
  int rank = 0;
  std::uint64_t first = 0;
};
// The elements at place i move to place i + 1, those at the last place to the first. The lowest rank comes first; each
// rank occurs at most once.
using Cycle = std::vector<CyclePlace>;

// The cycles of an `exchange` (bit_permutation.h) in which `rank` takes part. Those with the nearest ranks (rank XOR
// other) come first, so that the ranks do not all begin with the same one.
[[nodiscard]] std::vector<Cycle> cycles_of(const BitPermutation& exchange, int rank);

// Whether elements that go to different ranks lie in the same cache lines: two or more local bits move, one of them
// within a line.
[[nodiscard]] bool shares_lines(const BitPermutation& exchange, std::int64_t element_bytes);

// Cycles that are executed together: those of all ranks that cycles connect with `rank`. Each of these ranks executes
// all of the cycles for a part of the elements. Empty unless several cycles have elements in the same cache lines,
// because there is no gain otherwise.
struct CycleGroup {
  std::vector<int> ranks;  // in order
  std::vector<Cycle> cycles;
};
[[nodiscard]] CycleGroup connected_cycles(const BitPermutation& exchange, int rank, std::int64_t element_bytes);

// Which of the plan's arrays lie in memory that other ranks can map, on every rank.
class SharedArrays {
 public:
  // Collective: exchanges the locations of all arrays; none is shared unless `allowed`. `permutations` identifies the
  // permutations of the schedule (permutations_of). Throws Mismatch if it or the number of arrays differs between
  // ranks, Error if a rank refuses (refuse_channels).
  SharedArrays(GroupState& group, std::span<const std::span<std::byte>> arrays, bool allowed,
               std::uint64_t permutations);

  // Whether all these ranks share memory with one another and have the array there; the same answer on each of them.
  // Only for schedules with permutations.
  [[nodiscard]] bool holds(const std::vector<int>& ranks, int array) const;
  // Whether the rank has the array in memory that ranks which share memory with it can map.
  [[nodiscard]] bool holds(int rank, int array) const { return location(rank, array).fd >= 0; }
  // The address in this process of a rank's array of so many bytes. A collective step must follow the last call before
  // a rank may free its array. Throws PeerLost if the rank has ended.
  [[nodiscard]] std::byte* at(int rank, int array, std::int64_t bytes);
  // The memory of this rank's arrays and of those that at() has mapped, to be kept as long as they are used.
  [[nodiscard]] std::vector<SharedMemory> take_memory();

 private:
  struct Location {
    std::int32_t fd = -1;
    std::int32_t unused = 0;
    std::int64_t offset = 0;
  };

  [[nodiscard]] bool shares(int a, int b) const;
  [[nodiscard]] SharedMemory open_memory(int rank, int fd, std::uintptr_t low_bits);
  [[nodiscard]] const Location& location(int rank, int array) const {
    return locations_[static_cast<std::size_t>(rank) * arrays_ + static_cast<std::size_t>(array)];
  }

  GroupState& group_;
  std::size_t arrays_;
  std::vector<std::uintptr_t> own_;  // the addresses of this rank's arrays
  std::vector<SharedMemory> own_memory_;
  std::vector<Location> locations_;  // of every array of every rank
  std::vector<std::byte> shares_;    // 1 where rank a (row) shares memory with rank b
  std::vector<SharedMemory> mapped_;
  std::vector<std::vector<std::pair<std::int32_t, SharedMemory>>> mapped_of_;
};

// The signals between this rank and another: two messages a round each way, "ready" and "done".
struct Signals {
  Sender sender;
  Receiver receiver;
};

// This rank's part in the cycles of one round in shared memory.
class DirectExchange {
 public:
  // Adds cycles of which this rank, number `number` of `ranks`, moves its share once all of these ranks are ready.
  // `cycles` holds the addresses of each cycle's places, `signals` the other ranks' indices in the plan's signals.
  void add(std::vector<std::vector<std::byte*>> cycles, const Runs& runs, std::size_t number, std::size_t ranks,
           const std::vector<std::uint32_t>& signals);

  [[nodiscard]] bool empty() const noexcept { return shares_.empty(); }

  // Tells the others that this rank's array may be changed.
  void begin(std::span<Signals> signals);
  // Moves what can be moved; returns whether anything was.
  bool move(std::span<Signals> signals);
  [[nodiscard]] bool complete() const noexcept { return open_ == 0; }
  // Whether move() would do anything.
  [[nodiscard]] bool anything_to_do(std::span<const Signals> signals) const;
  // A rank that is waited for; -1 if none is. If all of these ranks but one have begun, it is that one: the others wait
  // for it too, and no rank would notice its end if each named another.
  [[nodiscard]] int waits_for(std::span<const Signals> signals) const;

 private:
  // This rank's share of some cycles.
  struct Share {
    std::vector<std::vector<std::byte*>> cycles;
    Runs runs;
    LineExchange lines;  // all cycles at once; empty: one after the other
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t at_once = 0;            // runs of one cycle before the next cycle's turn
    std::vector<std::uint32_t> partners;  // indices in partners_
    bool moved = false;
  };
  struct Partner {
    std::uint32_t signals = 0;
    std::uint32_t shares = 0;       // cycles in common
    std::uint32_t shares_left = 0;  // of this run
    bool ready = false;
    bool done = false;
  };

  std::uint32_t partner_for(std::uint32_t signals);
  bool move_share(Share& share, std::span<Signals> signals);

  std::vector<Share> shares_;
  std::vector<Partner> partners_;
  std::size_t open_ = 0;  // partners that are not done
};

}  // namespace onehop::detail
