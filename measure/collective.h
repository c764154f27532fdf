// One collective operation on float32.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "measure/buffer.h"
#include "measure/mpi/peers.h"
#include "measure/rounds.h"

namespace onehop::measure {

// The arrays of one candidate. Both may be the same.
struct FloatArrays {
  std::span<float> source;
  std::span<float> result;
};

// An operation of another library.
struct OtherOperation {
  std::string name;
  std::function<void()> run;
  FloatArrays arrays;
};

// The candidates that do one operation. In every repetition, one number in each cache line of the source is written,
// and one in each line of the result is compared. From 16 KiB on, the clock runs only during the operation.
class CollectiveRounds {
 public:
  // `one_array`: the same array is source and result. Collective.
  CollectiveRounds(const Group& group, CollectiveKind kind, std::int64_t source_bytes, std::int64_t result_bytes,
                   bool one_array);

  [[nodiscard]] Arena& arena() noexcept { return arena_; }
  // New arrays.
  [[nodiscard]] FloatArrays arrays();
  // `tolerance` is relative to the exact number.
  void add(const std::string& name, Role role, const FloatArrays& arrays, const std::function<void()>& run,
           float tolerance = 0);
  // Returns samples in µs. Collective.
  [[nodiscard]] std::vector<Samples> run(const Effort& effort) { return run_rounds(arena_, candidates_, effort); }

 private:
  Arena arena_;
  CollectiveKind kind_;
  std::int64_t source_bytes_;
  std::int64_t result_bytes_;
  bool one_array_;
  std::vector<Buffer> buffers_;
  std::vector<Candidate> candidates_;
};

}  // namespace onehop::measure
