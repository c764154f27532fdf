// The least cost of a host: bytes that leave it, and prices of its slices.
#pragma once

#include <span>
#include <vector>

#include "machine/mapping/slice_problem.h"

namespace onehop::detail {

class SliceTables {
 public:
  explicit SliceTables(const SliceProblem& problem);

  // Returns at most the least cost of all hosts of a class together, in units / parts. Keeps the tables.
  [[nodiscard]] double least(std::size_t host_class, Prices prices);

  // Adds to usage[p] how often price p is paid where the hosts of this class, for which the tables were made last, have
  // their least cost.
  void add_usage(std::size_t host_class, Prices prices, std::span<double> usage) const;

 private:
  using Table = std::vector<float>;  // entry n: for n positions

  [[nodiscard]] float* row(std::size_t level, std::int64_t slice, std::int64_t a);
  [[nodiscard]] const float* row(std::size_t level, std::int64_t slice, std::int64_t a) const;
  void append(std::size_t level, std::int64_t slice, Prices prices);
  void close(std::size_t level);
  // The number of positions in the last slice, or in the slice before one with a of them, of a best set of t.
  [[nodiscard]] std::int64_t last(std::size_t level, std::int64_t t) const;
  [[nodiscard]] std::int64_t before(std::size_t level, std::int64_t slice, std::int64_t a, std::int64_t t,
                                    float cost) const;

  const SliceProblem& problem_;
  std::vector<Table> tables_;    // entry k: of the slices of level k; the last one: of hosts
  std::vector<Table> appended_;  // of each level, for its slices 0, 1, ..: row a, column t: the last slice has a
                                 // positions, and all up to it have t
  Table relaxed_;
};

}  // namespace onehop::detail
