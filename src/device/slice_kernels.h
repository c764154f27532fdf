// Copies between slices of arrays and messages, for plans on devices (collectives/device_plan.h).
//
// A message has memory where it arrives, two of them for runs of even and odd numbers, and flags for every group of a
// launch. Group g of the sender packs part g of a message, and stores the number of the run in flag g of the receiver;
// group g of the receiver waits for that, unpacks the part, and stores the number in flag g of the sender, which waits
// for it before it packs the run after the next one. Groups count the runs in memory, so that nothing in the arguments
// changes from run to run. `stop`, and a group that has given up: as in all_reduce.h.
#pragma once

#include "src/device/team.h"

namespace onehop::device {

inline constexpr uint32_t most_slice_groups = 64;  // a message has so many flags
inline constexpr uint32_t most_slice_dims = 6;
inline constexpr uint64_t no_list = ~uint64_t{0};

// Words of a message and their places in an array: in a box, or of the elements of a list.
struct SlicePiece {
  unsigned char* array = nullptr;
  uint64_t wire = 0;  // where it begins in the message, a multiple of 16
  uint64_t words = 0;
  uint64_t list = no_list;  // where the list begins
  uint64_t extents[most_slice_dims] = {};
  int64_t strides[most_slice_dims] = {};  // in bytes; the fastest index first
  uint32_t dims = 0;
  uint32_t word_bytes = 1;  // 1, 2, 4, 8 or 16
};

struct SliceMessage {
  unsigned char* wire = nullptr;
  uint64_t set_bytes = 0;   // between the memory of even and odd runs
  uint64_t part_bytes = 0;  // of a group, a multiple of 16
  uint64_t first_piece = 0, pieces = 0;
  const uint32_t* awaited = nullptr;  // flags; null: none
  uint32_t* stored = nullptr;
};

struct SliceArguments {
  const SliceMessage* messages;
  const SlicePiece* pieces;
  const int64_t* lists;  // distances of elements from the array in bytes
  uint32_t* runs;        // of every group so far, and whether it has given up
  uint32_t* stop;
  uint32_t count;  // of messages
  uint32_t packs;
  uint32_t is_last;  // of the run
  uint32_t unused;
};

// Shared memory: the number of the run, whether the group has given up, and for each thread whether it was stopped.
[[nodiscard]] constexpr uint32_t slice_shared_bytes(uint32_t threads) { return 4 * (threads + 2); }

template <class T>
struct Word {
  T word;
};

inline int64_t place_of(const SlicePiece& piece, const int64_t* lists, uint64_t word) {
  int64_t place = 0;
  for (uint32_t d = 0; d < piece.dims; ++d) {
    const uint64_t extent = piece.extents[d];
    const uint64_t next = ((word | extent) >> 32) == 0 ? uint32_t(word) / uint32_t(extent) : word / extent;  // NOLINT
    place += static_cast<int64_t>(word - next * extent) * piece.strides[d];
    word = next;
  }
  return piece.list == no_list ? place : place + global(lists)[piece.list + word];
}

// The words of a piece that are in the bytes from `begin` to `end` of the message.
template <class Unit>
void move_words(const SliceArguments& arguments, const SlicePiece& piece, unsigned char* wire, uint64_t begin,
                uint64_t end, uint32_t thread, uint32_t threads) {
  const auto at_wire = global(reinterpret_cast<Unit*>(wire + piece.wire));
  const uint64_t first = begin > piece.wire ? (begin - piece.wire) / sizeof(Unit) : 0;
  const uint64_t behind = end > piece.wire ? (end - piece.wire) / sizeof(Unit) : 0;
  for (uint64_t i = first + thread; i < (behind < piece.words ? behind : piece.words); i += threads) {
    const auto at_array = global(reinterpret_cast<Unit*>(piece.array + place_of(piece, arguments.lists, i)));
    if (arguments.packs != 0) {
      at_wire[i].word = at_array->word;
    } else {
      at_array->word = at_wire[i].word;
    }
  }
}

template <class Team>
[[nodiscard]] bool await_slice_flag(Team& team, const uint32_t* flag, uint32_t number, uint32_t* stop) {
  for (uint32_t polls = 1; static_cast<int32_t>(team.load_acquire(flag) - number) < 0; ++polls) {
    if (polls % 64 == 0 && team.load_acquire(stop) != 0) {
      team.store_release(stop + 1, 1);
      return false;
    }
    team.pause();
  }
  return true;
}

template <class Team>
void move_slices(Team& team, const SliceArguments& arguments) {
  auto* const state = team.template shared<uint32_t>();
  const uint32_t group = team.group();
  uint32_t* const own = arguments.runs + uint64_t{2} * group;
  team.each([&](uint32_t thread) {
    if (thread == 0) state[0] = global(own)[0] + 1;
    if (thread == 0) state[1] = global(own)[1];
    state[2 + thread] = 0;
  });
  const uint32_t number = state[0];
  if (state[1] != 0) return;
  team.each([&](uint32_t thread) {
    for (uint32_t m = thread; m < arguments.count; m += team.threads()) {
      const uint32_t* const flags = arguments.messages[m].awaited;
      const uint32_t least = arguments.packs != 0 ? number - 2 : number;
      if (flags != nullptr && !await_slice_flag(team, flags + group, least, arguments.stop)) {
        state[2 + thread] = 1;
        team.store_release(own + 1, 1);
      }
    }
  });
  uint32_t stopped = 0;
  for (uint32_t t = 0; t < team.threads(); ++t) stopped |= state[2 + t];
  if (stopped != 0) return;
  team.each([&](uint32_t thread) {
    for (uint32_t m = 0; m < arguments.count; ++m) {
      const SliceMessage& message = arguments.messages[m];
      unsigned char* const wire = message.wire + (number % 2 == 0 ? 0 : message.set_bytes);
      const uint64_t begin = group * message.part_bytes;
      for (uint64_t p = 0; p < message.pieces; ++p) {
        const SlicePiece& piece = arguments.pieces[message.first_piece + p];
        const auto move = [&]<class Unit>(Unit) {
          move_words<Unit>(arguments, piece, wire, begin, begin + message.part_bytes, thread, team.threads());
        };
        if (piece.word_bytes == 16) move(Wide{});
        if (piece.word_bytes == 8) move(Word<uint64_t>{});
        if (piece.word_bytes == 4) move(Word<uint32_t>{});
        if (piece.word_bytes == 2) move(Word<uint16_t>{});
        if (piece.word_bytes == 1) move(Word<uint8_t>{});
      }
    }
  });
  team.each([&](uint32_t thread) {
    for (uint32_t m = thread; m < arguments.count; m += team.threads()) {
      if (arguments.messages[m].stored != nullptr) team.store_release(arguments.messages[m].stored + group, number);
    }
    if (thread == 0 && arguments.is_last != 0) global(own)[0] = number;
  });
}

}  // namespace onehop::device
