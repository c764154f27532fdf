// The time that applications of a lattice operator spend on faces, measured inside them.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "measure/rounds.h"
#include "onehop/group.h"

namespace onehop::bench {

class FaceClock {
 public:
  // Adds the time that one application of a block took to start and finish its faces.
  void add(double seconds) { of_block_.push_back(1e6 * seconds); }
  // Ends a block. Its time is the median of its applications, so that pauses of a virtual machine do not count.
  void end_block() {
    const std::size_t applications = of_block_.size();
    if (applications > 0) blocks_.push_back({applications, measure::median(std::exchange(of_block_, {}))});
  }

  // The µs of an application of a variant, averaged over the ranks, for each measured block; shorter ones, which only
  // fill caches, are left out. Collective.
  [[nodiscard]] measure::Samples samples(const Group& group, const std::string& variant) const {
    std::vector<double> mine;
    for (const Block& block : blocks_) {
      if (block.applications == blocks_.back().applications) mine.push_back(block.us);
    }
    std::vector<double> mean(mine.size());
    for (const auto& bytes : group.allgather(std::as_bytes(std::span<const double>(mine)))) {
      std::vector<double> theirs(mine.size());
      std::memcpy(theirs.data(), bytes.data(), bytes.size());
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += theirs[i] / group.size();
    }
    return {variant + ": faces, by clocks", measure::Role::variant, mean};
  }

 private:
  struct Block {
    std::size_t applications = 0;
    double us = 0;
  };
  std::vector<double> of_block_;
  std::vector<Block> blocks_;
};

}  // namespace onehop::bench
