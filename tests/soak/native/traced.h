// Runs of a schedule that only moves elements, compared with a model that costs a few instructions per word.
//
// Such a schedule moves the same elements in every run. So each byte of the result has an origin, which is found once;
// a run writes `base` XOR the word of the run into all arrays, and expects `base` at the origin XOR the same word. The
// word is periodic in the size of an element, so that it is the same at the origin and at the target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "onehop/plan.h"
#include "onehop/schedule.h"
#include "tests/soak/native/schedules.h"

namespace onehop::soak {

// Whether no transfer of the schedule combines or encodes elements.
[[nodiscard]] bool only_moves(const Schedule& schedule);

enum class Lengths : std::uint8_t { mixed, long_ };  // of messages; long ones have more than 4 KiB

// For Compared and Traced: draws options of a plan in shared memory, and describes them. Slots for long messages have
// at least 8 KiB.
[[nodiscard]] PlanOptions draw_options(Source& source, std::string& words, Lengths lengths = Lengths::mixed);
// Seldom sleeps for a moment, so that the other ranks yield, or fall asleep.
void pause_seldom(Source& source);
// Runs the plan in one of the ways of starting and finishing it; numbers below 15 are all of them.
void run_plan(Plan& plan, std::uint64_t way);

// One rank's arrays, bound to a plan of a schedule that only moves elements.
class Traced {
 public:
  // Collective. The options of the plan and the kind of memory are drawn from `source`, the same on all ranks.
  Traced(const Group& group, const Schedule& schedule, std::uint64_t seed, Source source,
         Lengths lengths = Lengths::mixed);
  // Writes new bytes into the arrays, those of this run.
  void renew(std::uint64_t number);
  // The plan's, or all of a run in one of its ways.
  void start() { plan_->start(); }
  [[nodiscard]] bool test() { return plan_->test(); }
  void finish() { plan_->finish(); }
  void run(std::uint64_t way) { run_plan(*plan_, way); }
  // Compares every byte, also those behind the arrays. Throws std::logic_error that names a wrong byte.
  void check(std::uint64_t number) const;
  // For tests: makes the next run expect another first byte.
  void spoil() { arrays_.back().after.front() ^= 1; }
  // Of the arrays of all ranks.
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  // Whether a sender of this rank chooses its stores while it runs.
  [[nodiscard]] bool adaptive() const;

 private:
  struct Array {
    std::vector<std::uint64_t> own;
    SharedArray shared;
    std::uint64_t* words;  // the array and what is behind it
    std::size_t element_bytes;
    std::vector<std::uint64_t> before, after;  // base at the bytes themselves and at their origins
  };
  [[noreturn]] void report(std::uint64_t number, const Array& array, std::uint64_t word) const;

  int rank_;
  std::int64_t bytes_ = 0;
  std::string schedule_;  // as JSON
  std::vector<Array> arrays_;
  std::string options_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace onehop::soak
