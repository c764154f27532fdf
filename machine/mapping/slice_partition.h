// What the hosts that share a slice can pay for it at most.
#pragma once

#include <span>
#include <vector>

#include "machine/mapping/slice_problem.h"

namespace onehop::detail {

class SlicePartition {
 public:
  explicit SlicePartition(const SliceProblem& problem);

  // Returns the most that hosts pay for all slices of the grid, each of which is divided among hosts. Adds to usage[p]
  // how often price p is paid then, with the opposite sign.
  [[nodiscard]] double most(Prices prices, std::span<double> usage);

 private:
  [[nodiscard]] double among_few(const SliceLevel& level, std::int64_t kind, Prices prices, std::span<double> usage);
  [[nodiscard]] double among_any(const SliceLevel& level, std::int64_t kind, Prices prices, std::span<double> usage);

  const SliceProblem& problem_;
  bool few_;
  std::vector<std::pair<std::size_t, std::int64_t>> hosts_;  // class and size of every host, where they are few
  std::vector<double> best_;  // entry t of a row: the most for t positions; a row per host where they are few
  std::vector<int> chosen_;   // the number of positions of the last host then
};

// Up to so many hosts are told apart in a slice.
constexpr std::int64_t few_hosts = 8;

}  // namespace onehop::detail
