// How far two hosts are from each other: the outermost border between them, its cost, and hops on a torus.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onehop/machine/mapping.h"

namespace onehop::detail {

class HostDistance {
 public:
  explicit HostDistance(const HostLayout& layout);

  [[nodiscard]] int hosts() const noexcept { return hosts_; }
  // Number of levels: inside a host, between hosts, and one per group.
  [[nodiscard]] int levels() const noexcept { return static_cast<int>(costs_.size()) + 1; }
  [[nodiscard]] bool has_torus() const noexcept { return !torus_.empty(); }
  // Whether every border costs the same.
  [[nodiscard]] bool flat() const noexcept { return flat_; }

  // 0 inside a host, 1 between hosts of a unit of groups[0], and so on.
  [[nodiscard]] int level(int a, int b) const {
    if (a == b) return 0;
    int level = 1;
    for (const std::int64_t unit : units_) {
      if (a / unit == b / unit) break;
      ++level;
    }
    return level;
  }
  [[nodiscard]] std::int64_t cost(int a, int b) const {
    if (a == b) return 0;
    return flat_ ? costs_.front() : costs_[static_cast<std::size_t>(level(a, b)) - 1];
  }
  [[nodiscard]] std::int64_t hops(int a, int b) const;
  [[nodiscard]] std::int64_t largest_cost() const;

 private:
  int hosts_ = 0;
  bool flat_ = true;
  std::vector<std::int64_t> units_;  // hosts in a unit of groups[0], of groups[1], ...
  std::vector<std::int64_t> costs_;
  std::vector<std::int64_t> torus_;
};

// Number of ranks on each host.
[[nodiscard]] std::vector<std::int64_t> host_sizes(std::span<const int> host_of_rank, int hosts);

}  // namespace onehop::detail
