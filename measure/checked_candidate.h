// What the benchmarks of collective operations share: candidates that write their source before every repetition and
// check their result after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "measure/buffer.h"
#include "measure/rounds.h"
#include "src/base/clock.h"

namespace onehop::measure {

// From this length on the clock runs only during the operation.
inline constexpr std::int64_t timed_alone = 16 << 10;
inline constexpr std::size_t floats_per_line = 16;
// The period of the numbers that are written: small enough for exact sums.
inline constexpr int number_cycle = 61;

// An operation of another library, on arrays that it receives once; both may be the same.
struct OtherOperation {
  std::string name;
  std::function<void()> run;
  std::span<float> source;
  std::span<float> result;
};

[[nodiscard]] inline std::span<float> floats(const Buffer& buffer) {
  return {reinterpret_cast<float*>(buffer.data()), buffer.bytes().size() / sizeof(float)};
}

// `Arrays` has dirty(), which writes one number into each cache line of the source, and check(name), which compares one
// number of each line of the result, and throws Error.
template <class Arrays>
[[nodiscard]] Candidate checked_candidate(const std::string& name, Role role, const std::shared_ptr<Arrays>& arrays,
                                          const std::function<void()>& run, std::int64_t bytes) {
  Candidate made{name, role, [=](int repetitions) {
                   for (int i = 0; i < repetitions; ++i) {
                     arrays->dirty();
                     run();
                     arrays->check(name);
                   }
                 }};
  if (bytes < timed_alone) return made;
  made.timed = [=](int repetitions) {
    double seconds = 0;
    for (int i = 0; i < repetitions; ++i) {
      arrays->dirty();
      const double begin = base::steady_seconds();
      run();
      seconds += base::steady_seconds() - begin;
      arrays->check(name);
    }
    return seconds * 1e6;
  };
  return made;
}

}  // namespace onehop::measure
