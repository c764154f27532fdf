// Sums over the ranks that are the same bits in every order: of numbers rounded to multiples of 2^-50.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "onehop/group.h"

namespace onehop::lattice::detail {

class ExactSum {
 public:
  // |x| below 2^12. A sum may have 2^64 such terms.
  void add(double x) { total_ += static_cast<Wide>(std::llround(x * 0x1p50)); }
  [[nodiscard]] double value() const { return static_cast<double>(total_) * 0x1p-50; }

  // Of all ranks, each sum by itself. Collective, with as many sums on every rank.
  static void over_ranks(const Group& group, std::span<ExactSum> sums) {
    const Gathered all = group.allgather(std::as_bytes(sums));
    std::vector<ExactSum> one(sums.size());
    for (ExactSum& sum : sums) sum = {};
    for (const auto& bytes : all) {
      std::memcpy(one.data(), bytes.data(), sums.size_bytes());
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i].total_ += one[i].total_;
    }
  }

 private:
  __extension__ using Wide = __int128;
  Wide total_ = 0;
};

}  // namespace onehop::lattice::detail
