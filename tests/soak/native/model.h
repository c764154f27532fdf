// Random verified schedules, and a model of the memory of all ranks that every run is compared with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "onehop/plan.h"
#include "onehop/schedule.h"

namespace onehop::soak {

// Random numbers that are the same with every standard library.
class Source {
 public:
  explicit Source(std::uint64_t seed) : engine_(seed) {}
  // A number of 0 to limit - 1.
  [[nodiscard]] std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(limit));
  }
  template <class T>
  [[nodiscard]] T one_of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

// Mixes two numbers into the seed of a part of a trial (the finaliser of SplitMix64).
[[nodiscard]] std::uint64_t mix(std::uint64_t seed, std::uint64_t number);

// A schedule without violations for `ranks` ranks, with a transfer between two of them: random transfers, or a pattern
// with random parameters. Its numbers are of 64 bits, so that sums of integers are exact in both types.
[[nodiscard]] Schedule random_schedule(Source& source, int ranks);

// The same with long messages: more than 4 KiB, and at most 256 KiB in most of them. It only moves elements.
[[nodiscard]] Schedule long_schedule(Source& source, int ranks);
inline constexpr std::int64_t longest_short_message = 4096;  // bytes
inline constexpr std::int64_t longest_message = 256 << 10;   // bytes

// The memory of all ranks, and what a run of a schedule does to it. It shares no code with plans: an element of a slice
// is found by the definition of a slice.
class Model {
 public:
  Model(const Schedule& schedule, std::uint64_t seed);

  // Gives new values to the elements that the schedule reads, so that each run moves other bytes.
  void renew(std::uint64_t run);
  // Does what a run of the schedule does.
  void run();

  // For tests: makes the next run expect another last byte in every array of a rank.
  void spoil(int rank) { spoiled_ = rank; }

  [[nodiscard]] std::span<const std::byte> array(int rank, int array) const;
  // The pieces of an array of a rank that renew() writes: offset and length in bytes.
  [[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> renewed(int rank, int array) const;
  // Elements that a run renews, reads and writes: a measure of its time.
  [[nodiscard]] std::int64_t elements() const;

 private:
  struct Segment {  // a transfer: reads_[first] to reads_[last - 1] go to the same entries of writes_
    std::size_t first, last;
    std::size_t bytes;  // of an element
    Combine combine;
    ElementType type;
  };
  struct Fresh {
    std::size_t at, bytes;
    ElementType type;
  };
  [[nodiscard]] std::size_t start(int rank, int array) const { return starts_[rank * arrays_ + array]; }
  void add_place(const Schedule& schedule, const Place& place, std::vector<std::size_t>& offsets) const;

  std::size_t arrays_;
  std::uint64_t seed_;
  int spoiled_ = -1;
  std::vector<std::size_t> starts_;  // of the arrays of all ranks, and the end
  std::vector<std::byte> memory_;
  std::vector<std::byte> moving_;
  std::vector<std::vector<Segment>> rounds_;
  std::vector<std::size_t> reads_, writes_;
  std::vector<Fresh> fresh_;
};

// One rank's arrays, bound to a plan.
class Bound {
 public:
  // Collective. The options of the plan and the kind of memory are drawn from `source`, the same on all ranks.
  Bound(const Group& group, const Schedule& schedule, Model& model, Source source);
  // Renews, runs and compares. Throws std::logic_error that describes the first wrong byte.
  void run(std::uint64_t number);

 private:
  struct Array {
    std::vector<std::byte> own;
    SharedArray shared;
    std::span<std::byte> bytes;
    std::vector<std::pair<std::size_t, std::size_t>> renewed;
  };
  int rank_;
  Model& model_;
  Source pauses_;
  std::vector<Array> arrays_;
  std::string options_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace onehop::soak
