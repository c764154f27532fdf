#include "measure/collective.h"

#include <algorithm>
#include <cmath>

#include "onehop/error.h"
#include "src/base/clock.h"

namespace onehop::measure {
namespace {

using Kind = CollectiveKind;

// From this length on the clock runs only during the operation.
constexpr std::int64_t timed_alone = 16 << 10;
constexpr std::size_t floats_per_line = 16;

// What is written to and expected in the arrays of one candidate. In call c, rank r writes (r + 1) (c + 1) + b into the
// part that is for rank b, the only one being 0; c begins again before sums are inexact.
class Numbers {
 public:
  Numbers(const Arena& arena, Kind kind, const FloatArrays& arrays, float tolerance)
      : rank_(arena.rank()), ranks_(arena.size()), kind_(kind), arrays_(arrays), tolerance_(tolerance) {}

  void dirty() noexcept {
    if (kind_ == Kind::broadcast && rank_ != 0) return;
    const int parts = kind_ == Kind::reduce_scatter || kind_ == Kind::all_to_all ? ranks_ : 1;
    const std::size_t length = arrays_.source.size() / static_cast<std::size_t>(parts);
    for (int b = 0; b < parts; ++b) {
      const float number = value(rank_, b);
      const auto part = arrays_.source.subspan(length * static_cast<std::size_t>(b), length);
      for (std::size_t i = 0; i < length; i += floats_per_line) part[i] = number;
    }
  }

  // Throws Error.
  void check(const std::string& name) {
    const int parts = kind_ == Kind::allgather || kind_ == Kind::all_to_all ? ranks_ : 1;
    const std::size_t length = arrays_.result.size() / static_cast<std::size_t>(parts);
    for (int r = 0; r < parts; ++r) {
      const float exact = expected(r);
      const auto part = arrays_.result.subspan(length * static_cast<std::size_t>(r), length);
      for (std::size_t i = 0; i < length; i += floats_per_line) {
        if (!(std::abs(part[i] - exact) <= tolerance_ * exact)) [[unlikely]] {
          throw Error(name + " is wrong: expected " + std::to_string(exact) + ", found " + std::to_string(part[i]));
        }
      }
    }
    ++calls_;
  }

 private:
  [[nodiscard]] int factor() const noexcept {
    constexpr int cycle = 61;
    return calls_ % cycle + 1;
  }
  [[nodiscard]] float value(int rank, int part) const noexcept {
    return static_cast<float>((rank + 1) * factor() + part);
  }
  // What this rank finds in part r of the result.
  [[nodiscard]] float expected(int r) const noexcept {
    if (kind_ == Kind::allgather) return value(r, 0);
    if (kind_ == Kind::all_to_all) return value(r, rank_);
    if (kind_ == Kind::broadcast) return value(0, 0);
    const int part = kind_ == Kind::reduce_scatter ? rank_ : 0;
    const int summed = ranks_ * (ranks_ + 1) / 2;
    return static_cast<float>(summed * factor() + ranks_ * part);
  }

  int rank_;
  int ranks_;
  Kind kind_;
  FloatArrays arrays_;
  float tolerance_;
  int calls_ = 0;
};

}  // namespace

CollectiveRounds::CollectiveRounds(const Group& group, CollectiveKind kind, std::int64_t source_bytes,
                                   std::int64_t result_bytes, bool one_array)
    : arena_(group), kind_(kind), source_bytes_(source_bytes), result_bytes_(result_bytes), one_array_(one_array) {}

FloatArrays CollectiveRounds::arrays() {
  const auto array = [this](std::int64_t bytes) {
    const std::span<std::byte> memory = buffers_.emplace_back(bytes).bytes();
    return std::span(reinterpret_cast<float*>(memory.data()), memory.size() / sizeof(float));
  };
  const std::span<float> source = array(source_bytes_);
  return {source, one_array_ ? source : array(result_bytes_)};
}

void CollectiveRounds::add(const std::string& name, Role role, const FloatArrays& arrays,
                           const std::function<void()>& run, float tolerance) {
  const auto numbers = std::make_shared<Numbers>(arena_, kind_, arrays, tolerance);
  Candidate made{name, role, [=](int repetitions) {
                   for (int i = 0; i < repetitions; ++i) {
                     numbers->dirty();
                     run();
                     numbers->check(name);
                   }
                 }};
  if (std::max(source_bytes_, result_bytes_) >= timed_alone) {
    made.timed = [=](int repetitions) {
      double seconds = 0;
      for (int i = 0; i < repetitions; ++i) {
        numbers->dirty();
        const double begin = base::steady_seconds();
        run();
        seconds += base::steady_seconds() - begin;
        numbers->check(name);
      }
      return seconds * 1e6;
    };
  }
  candidates_.push_back(std::move(made));
}

}  // namespace onehop::measure
