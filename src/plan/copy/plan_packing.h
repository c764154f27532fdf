// Packs and unpacks the chunks of a program. These functions are inline because they run between `start` and `finish`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "src/base/clock.h"
#include "src/plan/copy/plan_codec.h"
#include "src/plan/program/plan_program.h"

namespace onehop::detail {

// Pieces of at least this many bytes are stored directly from the array.
inline constexpr std::int64_t long_piece = 512;

inline void pack_steps(const Program& program, std::uint32_t first, std::uint32_t last, std::byte* wire) {
  for (std::uint32_t i = first; i < last; ++i) {
    const ProgramStep& step = program.steps[i];
    pack(step.copy, wire);
    wire += step.copy.bytes;
  }
}

inline void unpack_steps(const Program& program, std::uint32_t first, std::uint32_t last, const std::byte* wire) {
  for (std::uint32_t i = first; i < last; ++i) {
    const ProgramStep& step = program.steps[i];
    if (step.combine == Combine::replace) {
      unpack(step.copy, wire);
    } else {
      unpack(step.copy, wire, step.combine, step.type);
    }
    wire += step.copy.bytes;
  }
}

// Packs the steps of a chunk with ordinary stores that fetch the lines of the slot in advance.
inline void pack_steps_fetching(const Program& program, const ProgramChunk& chunk, std::byte* to) {
  std::byte* const end = to + (chunk.end - chunk.begin);
  for (std::uint32_t i = chunk.first; i < chunk.last; ++i) {
    const CopyStep& step = program.steps[i].copy;
    if (step.shape == nullptr) {
      pack(step, to);
    } else {
      pack_shape_fetching(step, to, end - to);
    }
    to += step.bytes;
  }
}

// Whether the runs of a step fill whole lines when they are stored from `to` on.
[[nodiscard]] inline bool fills_lines(const CopyStep& step, const std::byte* to) {
  constexpr std::int64_t line = 64;
  return step.shape != nullptr && step.shape->pieces.empty() && step.shape->run % line == 0 &&
         reinterpret_cast<std::uintptr_t>(to) % line == 0;
}

// Packs a chunk into a slot. Non-temporal stores are fast only in whole lines, so short and scattered pieces are packed
// in cache first. Long ones, and runs that fill whole lines, are stored directly from the array.
inline void pack_chunk(Program& program, std::uint32_t sender, const ProgramChunk& chunk, std::byte* slot) {
  std::byte* to = slot + chunk.begin;
  const StoreFunction store = program.stores[sender];
  if (chunk.encoded()) {
    std::byte* const wire = store == nullptr ? to : program.scratch.data();
    encode_pieces(program, chunk, wire);
    if (store == nullptr) return;
    store(to, wire, static_cast<std::size_t>(chunk.end - chunk.begin));
    return finish_stores(program.senders[sender].stores());
  }
  if (store == nullptr) {
    if (chunk.fetches) return pack_steps_fetching(program, chunk, to);
    return pack_steps(program, chunk.first, chunk.last, to);
  }
  std::byte* const scratch = program.scratch.data();
  std::byte* packed = scratch;
  const auto store_packed = [&] {
    store(to, scratch, static_cast<std::size_t>(packed - scratch));
    to += packed - scratch;
    packed = scratch;
  };
  for (std::uint32_t i = chunk.first; i < chunk.last; ++i) {
    const CopyStep& step = program.steps[i].copy;
    const bool in_lines = fills_lines(step, to + (packed - scratch));
    if (!in_lines && (step.shape != nullptr || step.bytes < long_piece)) {
      pack(step, packed);
      packed += step.bytes;
      continue;
    }
    if (packed != scratch) store_packed();
    if (in_lines) {
      pack_shape(step, to, store);
    } else {
      store(to, step.base, static_cast<std::size_t>(step.bytes));
    }
    to += step.bytes;
  }
  if (packed != scratch) store_packed();
  finish_stores(program.senders[sender].stores());
}

// The same for a sender that changes its kind of stores. A fragment begins with its first chunk. Kept out of the loop
// over short messages.
[[gnu::noinline]] inline void pack_adaptively(Program& program, std::uint32_t end, const ProgramChunk& chunk,
                                              std::int64_t fragment_bytes) {
  Sender& sender = program.senders[end];
  if (chunk.begin == 0) {
    sender.begin_use(fragment_bytes);
    program.stores[end] = stores_for_pieces(sender.stores());
  }
  if (!sender.times_use()) return pack_chunk(program, end, chunk, sender.payload());
  const double begin = base::steady_seconds();
  pack_chunk(program, end, chunk, sender.payload());
  sender.stored(base::steady_seconds() - begin);
}

inline void unpack_chunk(Program& program, const ProgramChunk& chunk, const std::byte* slot) {
  if (chunk.encoded()) return decode_pieces(program, chunk, slot + chunk.begin);
  unpack_steps(program, chunk.first, chunk.last, slot + chunk.begin);
}

// The same for a use of a slot that the sender has marked: to be timed, or written into the array already.
[[gnu::noinline]] inline void unpack_marked(Program& program, const ProgramChunk& chunk, Receiver& receiver) {
  const std::uint64_t mark = receiver.mark();
  if (mark == mark_in_array) return;
  const double begin = base::steady_seconds();
  if ((mark & mark_in_array) == 0) {
    unpack_chunk(program, chunk, receiver.payload());
  } else {
    // The computation that follows would fetch the lines and nobody could time it.
    for (std::uint32_t i = chunk.first; i < chunk.last; ++i) touch(program.steps[i].copy);
  }
  receiver.was_read(base::steady_seconds() - begin);
}

// Does copies inside the rank. Returns their bytes.
inline std::int64_t copy_inside(Program& program, std::span<const ProgramCopy> copies) {
  const std::vector<ProgramStep>& steps = program.steps;
  std::byte* scratch = program.scratch.data();
  std::int64_t bytes = 0;
  for (auto copy = copies.begin(); copy != copies.end(); ++copy) {
    bytes += copy->bytes;
    if (copy->with_next) {
      const auto first = copy++;
      copy_pair(steps[first->to_first].copy, steps[first->from_first].copy, steps[copy->to_first].copy,
                steps[copy->from_first].copy);
      bytes += copy->bytes;
    } else if (copy->direct) {
      for (std::uint32_t i = copy->from_first; i < copy->from_last; ++i) {
        copy_between(steps[copy->to_first + (i - copy->from_first)].copy, steps[i].copy);
      }
    } else {
      pack_steps(program, copy->from_first, copy->from_last, scratch);
      unpack_steps(program, copy->to_first, copy->to_last, scratch);
    }
  }
  return bytes;
}

}  // namespace onehop::detail
