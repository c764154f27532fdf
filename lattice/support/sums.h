// Sums over all ranks. They are added in the order of ranks, so that every rank gets the same bits. With
// superaccumulators ("wide") the result also has the same bits for every grid of ranks and every number of threads.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "onehop/group.h"
#include "onehop/plan.h"

namespace onehop::lattice::detail {

// The exact sum of up to 2^30 doubles of any magnitude (Kulisch): a fixed-point number in 64-bit words that overlap by
// half.
class Superaccumulator {
 public:
  static constexpr int words = 70;

  void add(double x) {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const int exponent = static_cast<int>((bits >> 52) & 0x7ff);
    if (exponent == 0x7ff) {
      special_ += x;
      return;
    }
    std::uint64_t mantissa = bits & ((std::uint64_t{1} << 52) - 1);
    if (exponent != 0) mantissa |= std::uint64_t{1} << 52;
    const int place = exponent == 0 ? 0 : exponent - 1;  // the mantissa's last bit stands for 2^(place - 1074)
    const int shift = place % 32;
    const std::uint64_t low = (mantissa & 0xffffffff) << shift;
    const std::uint64_t high = (mantissa >> 32) << shift;
    const std::int64_t sign = (bits >> 63) != 0 ? -1 : 1;
    std::int64_t* word = words_.data() + place / 32;
    word[0] += sign * static_cast<std::int64_t>(low & 0xffffffff);
    word[1] += sign * static_cast<std::int64_t>((low >> 32) + (high & 0xffffffff));
    word[2] += sign * static_cast<std::int64_t>(high >> 32);
  }
  void add(const Superaccumulator& other) {
    for (std::size_t i = 0; i < words; ++i) words_[i] += other.words_[i];
    special_ += other.special_;
  }
  // Rounded to a double, from the highest word down. The result depends only on the sum, not on the order of the terms.
  [[nodiscard]] double value() const {
    if (special_ != 0 || std::isnan(special_)) return special_;
    std::array<std::int64_t, words> digits{};
    if (digits_of(1, digits) >= 0) return from_digits(digits);
    static_cast<void>(digits_of(-1, digits));
    return -from_digits(digits);
  }

 private:
  // The digits of sign * sum in base 2^32. Returns the carry out of the highest digit, which is -1 if sign * sum is
  // negative.
  [[nodiscard]] std::int64_t digits_of(std::int64_t sign, std::array<std::int64_t, words>& digits) const {
    std::int64_t carry = 0;
    for (std::size_t i = 0; i < words; ++i) {
      const std::int64_t whole = sign * words_[i] + carry;
      digits[i] = whole & 0xffffffff;
      carry = whole >> 32;
    }
    return carry;
  }
  [[nodiscard]] static double from_digits(const std::array<std::int64_t, words>& digits) {
    double sum = 0;
    for (std::size_t i = words; i-- > 0;)
      sum += std::ldexp(static_cast<double>(digits[i]), 32 * static_cast<int>(i) - 1074);
    return sum;
  }

  std::array<std::int64_t, words> words_{};
  double special_ = 0;  // the sum of infinities and NaNs
};

class Sums {
 public:
  // Sums up to `capacity` numbers per call. `other` replaces the sum of plain doubles, for benchmarks. Collective.
  Sums(const Group& group, int capacity, bool wide, std::function<void(std::span<double>)> other = {});
  Sums(const Sums&) = delete;
  Sums& operator=(const Sums&) = delete;

  [[nodiscard]] bool wide() const noexcept { return wide_; }
  // Replaces each number by its sum over the ranks, or stores the sums of superaccumulators in `results`. Collective.
  void run(std::span<double> numbers);
  void run(std::span<const Superaccumulator> mine, std::span<double> results);

  // Seconds spent exchanging with other ranks.
  [[nodiscard]] double waited() const noexcept { return waited_; }

 private:
  void exchange();

  int rank_;
  int ranks_;
  int capacity_;
  bool wide_;
  std::vector<std::byte> bytes_;  // the blocks of all ranks
  std::vector<Plan> gather_;
  std::function<void(std::span<double>)> other_;
  double waited_ = 0;
};

}  // namespace onehop::lattice::detail
