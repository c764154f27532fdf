// The pack and unpack loops, between a slice of an array and contiguous bytes. A slice is analysed when a plan is made;
// a CopyStep holds the result for the fast path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "onehop/channel.h"
#include "onehop/schedule.h"
#include "onehop/slice.h"
#include "src/channel/store.h"

namespace onehop::detail {

// How a slice that is not one piece lies in memory: runs of `run` consecutive bytes, at the places that the other
// dimensions give; or a list of pieces.
struct CopyShape {
  std::int64_t run = 0;
  int outer = 0;                                              // dimensions besides the run
  std::array<std::int64_t, Slice::max_dims> extents{};        // of those, the last running fastest
  std::array<std::int64_t, Slice::max_dims> strides{};        // in bytes
  std::vector<std::pair<std::int64_t, std::int64_t>> pieces;  // (offset, length) in bytes; empty for a box

  friend bool operator==(const CopyShape&, const CopyShape&) = default;
};

// A slice of an array in memory, and its size on the wire in bytes.
struct CopyStep {
  std::byte* base = nullptr;
  std::int64_t bytes = 0;
  const CopyShape* shape = nullptr;  // null: one piece
};

// Returns the step for `slice` of an array that begins at `array` and has elements of `element_bytes` bytes. Stores its
// shape in `shapes`.
[[nodiscard]] CopyStep make_step(const Slice& slice, std::byte* array, std::int64_t element_bytes,
                                 std::deque<CopyShape>& shapes);

// Gathers a slice that is not one piece into step.bytes consecutive bytes; scatters them.
void pack_shape(const CopyStep& step, std::byte* wire) noexcept;
void unpack_shape(const CopyStep& step, const std::byte* wire) noexcept;

// The same for runs of a few lines, which go straight into a slot: with a function for each run, or with ordinary
// stores. Ordinary stores leave the core in order, and each would wait until its line has come from the receiver's
// cache, so the lines of the slot are fetched in advance. `room` is the number of bytes from `wire` to the end of the
// chunk.
void pack_shape(const CopyStep& step, std::byte* wire, StoreFunction store) noexcept;
void pack_shape_fetching(const CopyStep& step, std::byte* wire, std::int64_t room) noexcept;

inline void pack(const CopyStep& step, std::byte* wire) noexcept {
  if (step.shape == nullptr) return copy_bytes(wire, step.base, static_cast<std::size_t>(step.bytes));
  pack_shape(step, wire);
}

inline void unpack(const CopyStep& step, const std::byte* wire) noexcept {
  if (step.shape == nullptr) return copy_bytes(step.base, wire, static_cast<std::size_t>(step.bytes));
  unpack_shape(step, wire);
}

// Scatters and combines with the present elements.
void unpack(const CopyStep& step, const std::byte* wire, Combine combine, ElementType type) noexcept;

// Whether copy_between can handle the two: equal runs and extents, any strides.
[[nodiscard]] bool alike(const CopyStep& to, const CopyStep& from) noexcept;
// Copies from slice to slice, without a buffer.
void copy_between(const CopyStep& to, const CopyStep& from) noexcept;
// The same with a function for each run.
void copy_between(const CopyStep& to, const CopyStep& from, StoreFunction store) noexcept;

// Whether copy_pair can handle two copies: short runs in lines of their own, in slices of one shape.
[[nodiscard]] bool are_pair(const CopyStep& to, const CopyStep& from, const CopyStep& other_to,
                            const CopyStep& other_from) noexcept;
// The same as copy_between(to, from) and copy_between(other_to, other_from) in one loop: the two faces of a periodic
// dimension lie in the same cache lines if that dimension runs fastest, and one copy reads from lines into which the
// other one writes.
void copy_pair(const CopyStep& to, const CopyStep& from, const CopyStep& other_to, const CopyStep& other_from) noexcept;

// Reads a word of each cache line.
void touch(const CopyStep& step) noexcept;

// Number of runs of a step.
[[nodiscard]] inline std::int64_t runs_of(const CopyStep& step) noexcept {
  if (step.shape == nullptr) return 1;
  return step.shape->pieces.empty() ? step.bytes / step.shape->run
                                    : static_cast<std::int64_t>(step.shape->pieces.size());
}

}  // namespace onehop::detail
