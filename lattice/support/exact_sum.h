// Sums over sites and ranks that have the same bits in every order: terms are rounded to multiples of 2^-50 and added
// as integers.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "onehop/group.h"
#include "src/base/one_size.h"

namespace onehop::lattice::detail {

class ExactSum {
 public:
  // A sum may have up to 2^36 terms. A term of magnitude 2^40 or more, or one that is not finite, makes the sum NaN.
  void add(double x) {
    if (std::abs(x) < 0x1p12) [[likely]] {
      total_ += static_cast<Wide>(std::llround(x * 0x1p50));
    } else if (std::abs(x) < 0x1p40) {
      total_ += static_cast<Wide>(x * 0x1p50);  // already an integer
    } else {
      beyond_ = 1;
    }
  }
  [[nodiscard]] double value() const {
    return beyond_ == 0 ? static_cast<double>(total_) * 0x1p-50 : std::numeric_limits<double>::quiet_NaN();
  }

  // Adds up each sum over all ranks. Collective, with the same number of sums on every rank.
  static void over_ranks(const Group& group, std::span<ExactSum> sums) {
    const Gathered all = base::of_one_size(group.allgather(std::as_bytes(sums)), sums.size_bytes());
    std::vector<ExactSum> one(sums.size());
    for (ExactSum& sum : sums) sum = {};
    for (const auto& bytes : all) {
      std::memcpy(one.data(), bytes.data(), sums.size_bytes());
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i].total_ += one[i].total_;
        sums[i].beyond_ |= one[i].beyond_;
      }
    }
  }

 private:
  __extension__ using Wide = __int128;
  Wide total_ = 0;
  Wide beyond_ = 0;  // of the same width, so that the object has no padding, which would be sent uninitialised
};

}  // namespace onehop::lattice::detail
