// The program of a plan: the part of a schedule that concerns one rank, resolved to addresses.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "onehop/channel.h"
#include "onehop/plan.h"
#include "onehop/schedule.h"
#include "src/channel/store.h"
#include "src/plan/copy/slice_copy.h"
#include "src/plan/direct/direct_exchange.h"
#include "src/plan/guard/guard.h"

namespace onehop::detail {

// One pack or unpack, and how it combines.
struct ProgramStep {
  CopyStep copy;
  Combine combine = Combine::replace;
  ElementType type = ElementType::bytes;
};

// Steps [first, last) are encoded together: a part of one transfer, from the start of a codec's block to the end of
// a block.
struct ProgramPiece {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  Codec codec = Codec::raw;
  std::int64_t numbers = 0;
  std::int64_t wire_bytes = 0;
};

// Steps [first, last) fill the bytes [begin, end) of a fragment. If any of it is encoded, all its steps are in the
// pieces [first_piece, last_piece); otherwise there are no pieces.
struct ProgramChunk {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::uint32_t first_piece = 0;
  std::uint32_t last_piece = 0;
  bool fetches = false;  // an outgoing chunk: ordinary stores fetch the lines of the slot in advance

  [[nodiscard]] bool encoded() const noexcept { return first_piece != last_piece; }
};

// Chunks [first, last) pass through one slot.
struct ProgramFragment {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::int64_t bytes = 0;
  // For an outgoing fragment: the copies that write it straight into the receiver's array (Program::puts).
  std::uint32_t first_put = 0;
  std::uint32_t last_put = 0;
  // For an incoming fragment: the number of fragments of the message's dependency that must be packed before it is
  // unpacked.
  std::uint32_t after = 0;
};

// All data to or from one peer in a round: fragments [first, last).
struct ProgramMessage {
  std::uint32_t end = 0;  // index of the sender or receiver
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  // For an incoming message: the outgoing message (index in the round) that reads the same elements and so must be
  // packed before this one is unpacked over them; -1: none. `ProgramFragment::after` holds how far.
  int dependency = -1;
  // Progress of the run: the next fragment, and its next chunk (0 for an outgoing fragment that waits for a slot).
  std::uint32_t fragment = 0;
  std::uint32_t chunk = 0;
  // Incoming: fragments [first, in_order) are unpacked as they arrive, the others as ProgramRound::ordered says.
  std::uint32_t in_order = 0;
  bool exposes = false;   // incoming: the sender may write into this rank's array
  bool in_turns = false;  // transfers take turns on the wire (wire_turns.h)
  // Outgoing: whether the next fragment should be written into the receiver's array, if that has been decided.
  bool decided = false;
  bool puts = false;
};

// A copy inside the rank, or into the array of another rank: steps [from_first, from_last) gather into the scratch,
// steps [to_first, to_last) scatter. If the steps of both are pairwise alike, the copy goes directly from one to the
// other.
struct ProgramCopy {
  std::uint32_t from_first = 0;
  std::uint32_t from_last = 0;
  std::uint32_t to_first = 0;
  std::uint32_t to_last = 0;
  std::int64_t bytes = 0;
  bool direct = false;
  bool with_next = false;  // this copy and the next one are done in one loop
};

// A part of a message, or a copy inside the rank, that is combined in the order of the round.
struct ProgramOrdered {
  static constexpr std::uint32_t inside = ~std::uint32_t{0};

  std::uint32_t message = inside;  // index in ProgramRound::in
  std::uint32_t arrived = 0;       // chunks that must have arrived before, or `whole`
  ProgramChunk part;               // a part of one chunk; of copies, [first, last) of ProgramRound::ordered_copies
  bool ends_fragment = false;
};

// A swap of bits `a` and `b` of the element numbers in an array of 2^bits elements.
struct ProgramSwap {
  std::byte* array = nullptr;
  int bits = 0;
  int a = 0;
  int b = 0;
  std::int64_t element_bytes = 1;
};

struct ProgramRound {
  std::vector<ProgramMessage> out;
  std::vector<ProgramMessage> in;
  std::vector<ProgramCopy> copies;
  // Transfers that combine into elements of one another, and those beside them in a message: unpacked one after the
  // other. `next` is the progress of the run.
  std::vector<ProgramOrdered> ordered;
  std::vector<ProgramCopy> ordered_copies;
  std::size_t next = 0;
  // The messages of the round have equal layouts and their elements share cache lines, so all are packed, and unpacked,
  // chunk by chunk in lockstep.
  bool lockstep = false;
  // For a permutation of index bits: the exchange directly between arrays, and the swaps inside the rank that follow
  // it.
  DirectExchange direct;
  std::vector<ProgramSwap> inside;
  // Counters of these two.
  PlanCounters moved;
};

struct Program {
  std::vector<Sender> senders;
  std::vector<Receiver> receivers;
  std::vector<StoreFunction> stores;  // one per sender, for pieces; null: ordinary stores
  std::vector<ProgramStep> steps;
  std::deque<CopyShape> shapes;  // of the steps; a deque, because they point to them
  std::vector<ProgramPiece> pieces;
  std::vector<ProgramChunk> chunks;
  std::vector<ProgramFragment> fragments;
  std::vector<ProgramRound> rounds;
  std::vector<std::byte> scratch;
  std::vector<std::byte> numbers;       // numbers to be encoded, or decoded ones, of pieces that are not contiguous
  std::vector<bool> rails_assigned;     // whether a sender follows PlanOptions::rails; empty: none does
  std::vector<ProgramCopy> puts;        // into the arrays of other ranks
  std::vector<std::int64_t> puts_done;  // fragments, one per sender
  double patience = 0;                  // seconds to wait until a receiver has exposed its array
  std::vector<Signals> signals;         // of direct exchanges, one per rank that takes part
  std::vector<SharedMemory> kept;    // the arrays in shared memory of this rank, and those of others that it accesses
  std::unique_ptr<PlanWatch> watch;  // null unless the arrays are guarded or the run is traced
  std::int64_t staging_bytes = 0;
  bool exposes = false;  // some incoming message does
  bool polls = false;    // some end needs progress() between polls
};

// The function that stores a piece, or null where packing writes into the slot itself.
[[nodiscard]] inline StoreFunction stores_for_pieces(StoreKind kind) {
  return kind == StoreKind::plain ? nullptr : piece_function(kind);
}

// Opens the channels and builds the program. Collective. Throws like the constructor of Plan.
[[nodiscard]] Program make_program(const Group& group, const Schedule& schedule,
                                   std::span<const std::span<std::byte>> arrays, const PlanOptions& options);

}  // namespace onehop::detail
