// The choice of stores by a sender: with artificial times, and with ranks that compare every byte.
#include "src/channel/adaptive_stores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "onehop/channel.h"
#include "onehop/plan.h"
#include "onehop/schedule.h"
#include "onehop/tuning.h"
#include "tests/support/ranks.h"

namespace onehop {
namespace {

using detail::AdaptiveStores;
using detail::StoreTarget;

constexpr StoreKind usual = StoreKind::nontemporal;
constexpr StoreKind other = StoreKind::plain;

// A sender whose receiver answers part of a use at once, and the rest when it releases the slot: when as many more uses
// have begun as there are slots, or one less.
class Ends {
 public:
  explicit Ends(int slots, bool late = true)
      : late_(static_cast<std::uint64_t>(late ? slots : std::max(1, slots - 1))),
        stores_(usual, slots, full, answer_, released_) {}

  // Returns how many of the uses had each kind. Storing and reading `full` bytes each take `seconds(kind)`. Every
  // `short_every`-th use has a tenth of the bytes.
  std::array<int, 2> run(int uses, const std::function<double(StoreKind)>& seconds, int short_every = 0) {
    std::array<int, 2> count{};
    for (int i = 0; i < uses; ++i) {
      ++use_;
      if (use_ > late_) {
        if (asked_ != 0 && asked_ + late_ <= use_) {
          if (answers) answer_ = detail::reading_time(asked_, seconds(asked_kind_));
          asked_ = 0;
        }
        released_ = use_ - late_;
      }
      const bool is_short = short_every > 0 && use_ % static_cast<std::uint64_t>(short_every) == 0;
      const StoreKind kind = stores_.begin(use_, is_short ? full / 10 : full);
      ++count[kind == usual ? 0 : 1];
      if (!stores_.times()) continue;
      ++timed;
      EXPECT_FALSE(is_short);
      EXPECT_EQ(asked_, 0U) << "two answers at a time";
      asked_ = use_;
      asked_kind_ = kind;
      // In two parts, as a slot of two chunks. Of the reading, a tenth is known at once.
      stores_.stored(seconds(kind) / 2);
      stores_.stored(seconds(kind) / 2);
      if (answers) answer_ = detail::reading_time(asked_, seconds(kind) / 10);
    }
    return count;
  }

  [[nodiscard]] StoreKind chosen() const { return stores_.chosen(); }

  bool answers = true;
  int timed = 0;

 private:
  static constexpr std::int64_t full = 20000;
  std::uint64_t late_;
  std::atomic<std::uint64_t> answer_{0};
  std::atomic<std::uint64_t> released_{0};
  AdaptiveStores stores_;
  std::uint64_t use_ = 0;
  std::uint64_t asked_ = 0;
  StoreKind asked_kind_ = usual;
};

double near(StoreKind kind) { return kind == usual ? 4e-6 : 1e-6; }
double far(StoreKind kind) { return kind == usual ? 4e-6 : 12e-6; }

// Other processors have one kind of stores only, so there is nothing to choose.
#if defined(__x86_64__)
constexpr bool has_two_kinds = true;
#else
constexpr bool has_two_kinds = false;
#endif

class StoresOfSlots : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!has_two_kinds) GTEST_SKIP() << "this processor has one kind of stores";
  }
};
INSTANTIATE_TEST_SUITE_P(AdaptiveStores, StoresOfSlots, ::testing::Values(1, 2, 3, 8));

TEST_P(StoresOfSlots, TryTheWorseKindSeldom) {
  for (const bool late : {false, true}) {
    Ends ends(GetParam(), late);
    ends.run(3000, far);
    EXPECT_EQ(ends.chosen(), usual);
    ends.timed = 0;
    const auto count = ends.run(20000, far);
    EXPECT_GE(count[1], 20000 / 600);
    EXPECT_LE(count[1], 20000 / 512 * (3 * GetParam() + 4));
    EXPECT_LE(ends.timed, 20000 / 6);
  }
}

// Messages of several fragments, the last of which is short: it may not be compared with the others.
TEST_P(StoresOfSlots, CompareFragmentsOfOneLength) {
  for (const bool late : {false, true}) {
    for (const int fragments : {2, 4, 8}) {
      Ends nearby(GetParam(), late);
      nearby.run(2000, near, fragments);
      EXPECT_EQ(nearby.chosen(), other) << fragments;
      Ends distant(GetParam(), late);
      distant.run(2000, far, fragments);
      const auto count = distant.run(20000, far, fragments);
      EXPECT_EQ(distant.chosen(), usual) << fragments;
      EXPECT_LE(count[1], 20000 / 512 * (6 * GetParam() + 8)) << fragments;
    }
  }
}

// Plans cut messages between elements: fragments of 144-byte matrices do not fill a slot of 262144 bytes.
TEST(AdaptiveStores, FragmentsThatNearlyFillASlotCount) {
  if (!has_two_kinds) GTEST_SKIP() << "this processor has one kind of stores";
  constexpr std::int64_t slot = 262144;
  std::atomic<std::uint64_t> answer{0};
  std::atomic<std::uint64_t> released{0};
  AdaptiveStores stores(usual, 1, slot, answer, released);
  for (std::uint64_t use = 1; use <= 200; ++use) {
    const StoreKind kind = stores.begin(use, slot / 144 * 144);
    stores.stored(near(kind));
    answer = detail::reading_time(use, near(kind));
    released = use;
  }
  EXPECT_EQ(stores.chosen(), other);
}

TEST_P(StoresOfSlots, StayWithoutAnswers) {
  Ends ends(GetParam());
  ends.answers = false;
  EXPECT_EQ(ends.run(10000, near)[1], 0);
  EXPECT_EQ(ends.chosen(), usual);
  // They come at last.
  ends.answers = true;
  ends.run(6000, near);
  EXPECT_EQ(ends.chosen(), other);
  // And they no longer come: the best kind that was found stays, but for the end of a trial.
  ends.answers = false;
  ends.run(3000, near);
  EXPECT_GE(ends.run(10000, near)[1], 9800);
}

// Uses that could go into the receiver's array or through slots; how many went each way.
class Targets {
 public:
  using Seconds = std::function<double(StoreTarget, StoreKind)>;

  std::array<int, 2> run(int uses, const Seconds& seconds) {
    std::array<int, 2> count{};
    for (int i = 0; i < uses; ++i) {
      const StoreTarget target = stores_.puts_next(full) ? StoreTarget::array : StoreTarget::slot;
      const StoreKind kind = stores_.begin(++use_, full, target);
      ++count.at(static_cast<std::size_t>(target));
      if (stores_.times()) {
        stores_.stored(seconds(target, kind) / 4);
        answer_ = detail::reading_time(use_, seconds(target, kind) * 3 / 4);
      }
      released_ = use_;
    }
    return count;
  }

 private:
  static constexpr std::int64_t full = 20000;
  std::atomic<std::uint64_t> answer_{0};
  std::atomic<std::uint64_t> released_{0};
  std::uint64_t use_ = 0;
  AdaptiveStores stores_{usual, 2, full, answer_, released_};
};

constexpr std::size_t to_slot = 0;
constexpr std::size_t to_array = 1;

TEST(AdaptiveStores, ArraysAreWrittenWhereThatIsFaster) {
  Targets targets;
  const auto seconds = [](StoreTarget target, StoreKind) { return target == StoreTarget::array ? 1e-6 : 2e-6; };
  EXPECT_GT(targets.run(1000, seconds)[to_array], 700);
  EXPECT_GT(targets.run(40000, seconds)[to_array], 39000);
}

// Only with the other kind of stores are slots faster than the array.
TEST(AdaptiveStores, SlotsAreUsedWhereTheyAreFaster) {
  if (!has_two_kinds) GTEST_SKIP() << "this processor has one kind of stores";
  Targets targets;
  const auto slots_faster = [](StoreTarget target, StoreKind kind) {
    return target == StoreTarget::array ? 3e-6 : kind == usual ? 9e-6 : 2e-6;
  };
  const auto arrays_faster = [](StoreTarget target, StoreKind kind) {
    return target == StoreTarget::array ? 1e-6 : kind == usual ? 9e-6 : 2e-6;
  };
  const auto slots_slow = [](StoreTarget target, StoreKind) { return target == StoreTarget::array ? 3e-6 : 9e-6; };
  targets.run(500, slots_faster);
  EXPECT_GT(targets.run(10000, slots_faster)[to_slot], 9000);
  targets.run(5000, arrays_faster);  // found at the next trial
  EXPECT_GT(targets.run(10000, arrays_faster)[to_array], 9000);
  targets.run(5000, slots_faster);
  EXPECT_GT(targets.run(1000, slots_faster)[to_slot], 900);
  targets.run(200, slots_slow);  // found at once
  EXPECT_GT(targets.run(1000, slots_slow)[to_array], 900);
}

TEST(AdaptiveStores, AnAnswerNamesItsUse) {
  EXPECT_EQ(detail::reading_time(7, 3e-6), (std::uint64_t{7} << 32U) + 3000);
  EXPECT_EQ(detail::reading_time(1, 1e9) >> 32U, 1U);  // a receiver that was stopped
}

TEST(AdaptiveStores, ShortMessagesStay) {
  EXPECT_TRUE(detail::stores_adapt(2049));
  EXPECT_FALSE(detail::stores_adapt(2048));
}

// The built-in rules of Intel's processors begin with hints.
TEST(AdaptiveStores, HintsTakeTurnsWithPlainStores) {
  if (!has_two_kinds) GTEST_SKIP() << "this processor has one kind of stores";
  constexpr std::int64_t slot = 16384;
  for (const StoreKind hint : {StoreKind::prefetch, StoreKind::demote}) {
    std::atomic<std::uint64_t> answer{0};
    std::atomic<std::uint64_t> released{0};
    AdaptiveStores stores(hint, 1, slot, answer, released);
    std::array<int, 4> count{};
    for (std::uint64_t use = 1; use <= 2000; ++use) {
      const StoreKind kind = stores.begin(use, slot);
      ++count.at(static_cast<std::size_t>(kind));
      const double seconds = kind == StoreKind::plain ? 1e-6 : 4e-6;
      if (stores.times()) {
        stores.stored(seconds);
        answer = detail::reading_time(use, 0);
      }
      released = use;
    }
    EXPECT_EQ(stores.chosen(), StoreKind::plain);
    EXPECT_EQ(count[static_cast<std::size_t>(hint)] + count[static_cast<std::size_t>(StoreKind::plain)], 2000);
    EXPECT_GT(count[static_cast<std::size_t>(hint)], 0);
  }
}

std::byte expected(std::int64_t message, std::int64_t byte) {
  return static_cast<std::byte>((message * 131 + byte * 7 + byte / 251) & 255);
}

std::int64_t wrong_bytes(std::span<const std::byte> part, std::int64_t message, std::int64_t at) {
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < part.size(); ++i) {
    wrong += part[i] != expected(message, at + static_cast<std::int64_t>(i)) ? 1 : 0;
  }
  return wrong;
}

void write_message(std::span<std::byte> memory, std::int64_t message) {
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = expected(message, static_cast<std::int64_t>(i));
}

// Channels and plans begin with `nontemporal` whatever the processor is, and so adapt.
void begin_nontemporal() {
  Tuning tuned = tuning();
  tuned.adaptive_stores = true;
  for (SizeRule& rule : tuned.rules) rule.stores = StoreKind::nontemporal;
  set_tuning(tuned);
}

// Several fragments and chunks in each message, and several trials.
constexpr std::int64_t bytes = 70001;
constexpr std::int64_t messages = 400;

TEST(AdaptiveStores, EveryByteOfAMessageArrives) {
  testing::on_ranks(2, [](const Group& group) {
    begin_nontemporal();
    for (const bool copies : {false, true}) {
      ChannelSpec spec{.direction = group.rank() == 0 ? ChannelSpec::Direction::send : ChannelSpec::Direction::receive,
                       .peer = 1 - group.rank(),
                       .bytes = bytes,
                       .slot_bytes = 20000,
                       .chunk_bytes = 6000};
      Channels ends = open_channels(group, {&spec, 1});
      std::vector<std::byte> memory(bytes);
      std::array<int, 4> messages_of{};
      for (std::int64_t message = 0; message < messages; ++message) {
        if (group.rank() == 0) {
          write_message(memory, message);
          ends.senders[0].put(memory);
          ++messages_of[static_cast<std::size_t>(ends.senders[0].stores())];
          continue;
        }
        std::int64_t wrong = 0;
        if (copies) {
          ends.receivers[0].get(memory);
          wrong = wrong_bytes(memory, message, 0);
        } else {
          ends.receivers[0].read(
              [&](std::span<const std::byte> part, std::int64_t at) { wrong += wrong_bytes(part, message, at); });
        }
        ASSERT_EQ(wrong, 0) << "message " << message;
      }
      if (group.rank() == 1) continue;
      EXPECT_TRUE(ends.senders[0].adaptive());
      if (!has_two_kinds) continue;
      EXPECT_GT(messages_of[static_cast<std::size_t>(StoreKind::nontemporal)], 0);
      EXPECT_GT(messages_of[static_cast<std::size_t>(StoreKind::plain)], 0);
    }
  });
}

// wait() and release() around code that reads the slot in place.
TEST(AdaptiveStores, SlotsThatAreReadInPlaceAreTimed) {
  testing::on_ranks(2, [](const Group& group) {
    begin_nontemporal();
    ChannelSpec spec{.direction = group.rank() == 0 ? ChannelSpec::Direction::send : ChannelSpec::Direction::receive,
                     .peer = 1 - group.rank(),
                     .bytes = 9000};
    Channels ends = open_channels(group, {&spec, 1});
    std::vector<std::byte> memory(static_cast<std::size_t>(spec.bytes));
    int timed = 0;
    for (std::int64_t message = 0; message < 2 * messages; ++message) {
      if (group.rank() == 0) {
        write_message(memory, message);
        ends.senders[0].put(memory);
        timed += ends.senders[0].times_use() ? 1 : 0;
      } else {
        ASSERT_EQ(wrong_bytes(ends.receivers[0].wait(), message, 0), 0) << "message " << message;
        ends.receivers[0].release();
      }
    }
    // Without answers, eight uses would have been timed.
    if (group.rank() == 0 && has_two_kinds) {
      EXPECT_GT(timed, 10);
    }
  });
}

}  // namespace
}  // namespace onehop
