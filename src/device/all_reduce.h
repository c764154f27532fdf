// The sum of an array over the cards of a host, in one launch. docs/reference/codecs.md has the layout of tiles,
// docs/design/protocol.md the argument why the flags are enough, docs/model/device.pml its model.
//
// Every rank has a window, which all ranks can write to. A group of a launch meets the groups of the same number on the
// other ranks and no others. A meeting: a group writes to its slots in the windows, stores the number of the meeting in
// its flags there, and waits until all flags in its own window have that number or a later one. Meetings of a group are
// counted over all launches, in the window, so that nothing in the arguments changes from launch to launch (a captured
// graph can be replayed). There are two sets of slots, for even and odd meetings: who has met for the number n + 1
// knows that all others have read what was written for n.
//
// A slot holds a few tiles. One-shot: every rank writes all numbers to all others, which add them. Two-shot: rank s
// adds segment s, and writes the sum to all. A longer array takes several rounds of that. The numbers are added as
// float32 in the order of the ranks, by one rank or by all from the same bytes, so the sum has the same bits
// everywhere.
//
// The ranks of a group launch the same sequence of kernels with the same count, type, groups, tiles and shots. The
// groups of a launch must be on the card at the same time. `stop`: two words that the processor and a running kernel
// share. The processor sets the first one because a rank is lost: the kernel then sets the second one at its next wait,
// and ends without storing another flag, so that no rank takes what is missing for a sum; its target is undefined, and
// the windows are of no use any more: its group in later launches ends at once, because ranks that are late may still
// read its slots.
#pragma once

#include "src/device/codec_tiles.h"

namespace onehop::device {

inline constexpr uint32_t most_ranks = 8;
inline constexpr uint32_t slot_bytes = most_tiles * tile_numbers * 4;

// A window: for every group the number of its last meeting and whether it has given up, its flags for every rank, and
// its slots. Kernels of several
// cards read and write it while they run: it comes from `Device::allocate_for_peers`.
struct WindowLayout {
  uint32_t ranks;
  uint32_t groups;  // the most of any launch

  [[nodiscard]] constexpr uint64_t flag(uint32_t from, uint32_t group) const {
    return 4 * (uint64_t{from + 2} * groups + group);
  }
  // The bytes before the slots. All are zeros at first. (Tests begin at another number of meetings.)
  [[nodiscard]] constexpr uint64_t control_bytes() const { return (flag(ranks, 0) + 15) / 16 * 16; }
  [[nodiscard]] constexpr uint64_t slot(uint32_t meeting, uint32_t from, uint32_t group) const {
    return control_bytes() + (uint64_t{meeting % 2 * ranks + from} * groups + group) * slot_bytes;
  }
  [[nodiscard]] constexpr uint64_t bytes() const { return slot(1, ranks, 0); }
};

struct AllReduceArguments {
  unsigned char* windows[most_ranks];  // by rank; aligned to 16 bytes
  const void* source;
  void* target;  // may be the source
  uint64_t count;
  uint32_t* stop;  // null: nothing ends a wait
  NumberType type;
  uint32_t rank;
  uint32_t ranks;
  uint32_t window_groups;  // WindowLayout::groups
  uint32_t tiles;          // per slot, up to most_tiles: fewer spread short arrays over more groups
  uint32_t shots;          // 1 or 2
};

struct MeetingState {
  uint32_t number;
  uint32_t has_given_up;
  uint32_t stopped[most_ranks];
};
inline constexpr uint32_t all_reduce_shared_bytes = codec_shared_bytes + sizeof(MeetingState);

template <class Team>
class Meetings {
 public:
  Meetings(Team& team, const AllReduceArguments& arguments)
      : team_(team),
        arguments_(arguments),
        layout_{arguments.ranks, arguments.window_groups},
        state_(reinterpret_cast<MeetingState*>(team.template shared<unsigned char>() + codec_shared_bytes)) {
    team_.each([&](uint32_t thread) {
      if (thread == 0) state_->number = global(own_words())[0];
      if (thread == 0) state_->has_given_up = global(own_words())[1];
      for (uint32_t r = thread; r < arguments_.ranks; r += team_.threads()) state_->stopped[r] = 0;
    });
    number_ = state_->number + 1;
  }

  // In a launch before this one, which then has to end.
  [[nodiscard]] bool has_given_up() const { return state_->has_given_up != 0; }

  // The slot of a rank in the window of another one, for the next meeting (or the last one, with `met` = 1).
  [[nodiscard]] unsigned char* slot(uint32_t window, uint32_t from, uint32_t met = 0) const {
    return arguments_.windows[window] + layout_.slot(number_ - met, from, team_.group());
  }

  // False: the kernel has to end.
  [[nodiscard]] bool meet() {
    const uint32_t number = number_++;
    team_.each([&](uint32_t thread) {
      for (uint32_t r = thread; r < arguments_.ranks; r += team_.threads()) {
        team_.store_release(flag(r, arguments_.rank), number);
      }
    });
    team_.each([&](uint32_t thread) {
      for (uint32_t r = thread; r < arguments_.ranks; r += team_.threads()) wait(r, number);
    });
    uint32_t stopped = 0;
    for (uint32_t r = 0; r < arguments_.ranks; ++r) stopped |= state_->stopped[r];
    return stopped == 0;
  }

  void end() {
    team_.each([&](uint32_t thread) {
      if (thread == 0) global(own_words())[0] = number_ - 1;
    });
  }

 private:
  [[nodiscard]] uint32_t* flag(uint32_t window, uint32_t from) const {
    return reinterpret_cast<uint32_t*>(arguments_.windows[window] + layout_.flag(from, team_.group()));
  }
  // The number of the last meeting, and whether the group has given up.
  [[nodiscard]] uint32_t* own_words() const {
    return reinterpret_cast<uint32_t*>(arguments_.windows[arguments_.rank]) + uint64_t{2} * team_.group();
  }
  // A flag may be one meeting ahead. The difference is right when the numbers wrap.
  void wait(uint32_t from, uint32_t number) {
    for (uint32_t polls = 1; static_cast<int32_t>(team_.load_acquire(flag(arguments_.rank, from)) - number) < 0;
         ++polls) {
      if (polls % 64 == 0 && arguments_.stop != nullptr && team_.load_acquire(arguments_.stop) != 0) {
        state_->stopped[from] = 1;
        team_.store_release(own_words() + 1, 1);
        team_.store_release(arguments_.stop + 1, 1);
        return;
      }
      team_.pause();
    }
  }

  Team& team_;
  const AllReduceArguments& arguments_;
  WindowLayout layout_;
  MeetingState* state_;
  uint32_t number_;  // of the next meeting
};

// The steps of a segment, for codecs. `put` writes numbers to the own slot in the windows of the ranks from `first` to
// `end` - 1: those of an array, or the sum of the slots in the own window. `store` adds the slots of such ranks.
template <class Format, class Team>
struct CodecSteps {
  Team& team;
  const Meetings<Team>& meetings;
  const AllReduceArguments& arguments;
  uint32_t tiles;
  Chunk<Format> chunk{team.template shared<float>(), tiles};

  void put(bool of_sum, const Part& part, uint32_t first, uint32_t end) {
    if (of_sum) {
      sum(0, arguments.ranks);
    } else {
      load_numbers(team, chunk, part);
    }
    encode_chunk(team, chunk);
    for (uint32_t r = first; r < end; ++r) store_tiles(team, chunk, meetings.slot(r, arguments.rank));
  }
  void store(const Part& part, uint32_t first, uint32_t end) {
    sum(first, end);
    store_numbers(team, chunk, part);
  }

 private:
  void sum(uint32_t first, uint32_t end) {
    for (uint32_t r = first; r < end; ++r) {
      load_tiles(team, chunk, meetings.slot(arguments.rank, r, 1));
      decode_chunk(team, chunk, r == first);
    }
  }
};

// The same for numbers that travel as they are in memory.
template <class Team>
struct RawSteps {
  Team& team;
  const Meetings<Team>& meetings;
  const AllReduceArguments& arguments;
  uint32_t tiles;

  void put(bool of_sum, const Part& part, uint32_t first, uint32_t end) {
    each_wide([&](uint32_t i) {
      const uint64_t at = part.first + uint64_t{i} * part.per_wide();
      if (of_sum || part.has_wide(at)) {
        const Wide wide = of_sum ? sum(i, 0, arguments.ranks) : part.read_wide(at);
        for (uint32_t r = first; r < end; ++r)
          slot(r, arguments.rank, 0).write_wide(uint64_t{i} * part.per_wide(), wide);
      } else {
        for (uint32_t j = 0; j < part.per_wide(); ++j) {
          for (uint32_t r = first; r < end; ++r) {
            slot(r, arguments.rank, 0).write(uint64_t{i} * part.per_wide() + j, part.read(at + j));
          }
        }
      }
    });
  }
  void store(const Part& part, uint32_t first, uint32_t end) {
    each_wide([&](uint32_t i) {
      const uint64_t at = part.first + uint64_t{i} * part.per_wide();
      if (part.has_wide(at)) {
        part.write_wide(at, sum(i, first, end));
      } else {
        for (uint32_t j = 0; j < part.per_wide(); ++j) {
          float number = 0;
          for (uint32_t r = first; r < end; ++r) {
            const float one = slot(arguments.rank, r, 1).read(uint64_t{i} * part.per_wide() + j);
            number = r == first ? one : number + one;
          }
          part.write(at + j, number);
        }
      }
    });
  }

 private:
  [[nodiscard]] Part slot(uint32_t window, uint32_t from, uint32_t met) const {
    return Part{meetings.slot(window, from, met), arguments.type, 0, slot_bytes};
  }
  template <class Body>
  void each_wide(const Body& body) {
    const uint32_t wides = tiles * tile_numbers / (16 / bytes_of(arguments.type));
    team.each([&](uint32_t thread) { ONEHOP_ROLL for (uint32_t i = thread; i < wides; i += team.threads()) body(i); });
  }
  [[nodiscard]] Wide sum(uint32_t i, uint32_t first, uint32_t end) const {
    float sums[8] = {};
    ONEHOP_ROLL for (uint32_t r = first; r < end; ++r) {
      const Part from = slot(arguments.rank, r, 1);
      unpack_wide(from.read_wide(uint64_t{i} * from.per_wide()), arguments.type,
                  [&](uint32_t j, float number) { sums[j] = r == first ? number : sums[j] + number; });
    }
    return pack_wide(arguments.type, [&](uint32_t j) { return sums[j]; });
  }
};

template <template <class> class Steps, class Team>
inline void all_reduce(Team& team, const AllReduceArguments& arguments) {
  Meetings<Team> meetings(team, arguments);
  if (meetings.has_given_up()) return;
  const bool two_shot = arguments.shots == 2;
  const uint32_t ranks = arguments.ranks;
  const uint32_t segments = two_shot ? ranks : 1;
  const uint64_t all_tiles = (arguments.count + tile_numbers - 1) / tile_numbers;
  const uint64_t per_round = uint64_t{segments} * arguments.tiles;
  ONEHOP_ROLL for (uint64_t round = team.group(); round * per_round < all_tiles; round += team.groups()) {
    const auto first_tile = [&](uint32_t segment) { return round * per_round + uint64_t{segment} * arguments.tiles; };
    const auto part = [&](const void* array, uint32_t segment) {
      return Part{array, arguments.type, first_tile(segment) * tile_numbers, arguments.count};
    };
    const auto steps = [&](uint32_t segment) {
      const uint64_t left = first_tile(segment) < all_tiles ? all_tiles - first_tile(segment) : 0;
      const uint64_t tiles = left < arguments.tiles ? left : arguments.tiles;
      return Steps<Team>{team, meetings, arguments, static_cast<uint32_t>(tiles)};
    };
    ONEHOP_ROLL for (uint32_t s = 0; s < (two_shot ? ranks + 1 : 1); ++s) {
      const bool last = s == ranks;
      if (last && !meetings.meet()) return;
      const bool to_one = two_shot && !last;
      steps(last ? arguments.rank : s).put(last, part(arguments.source, s), to_one ? s : 0, to_one ? s + 1 : ranks);
    }
    if (!meetings.meet()) return;
    ONEHOP_ROLL for (uint32_t s = 0; s < segments; ++s) {
      steps(s).store(part(arguments.target, s), two_shot ? s : 0, two_shot ? s + 1 : ranks);
    }
  }
  meetings.end();
}

template <class Format>
struct With {
  template <class Team>
  using Steps = CodecSteps<Format, Team>;
};

}  // namespace onehop::device
