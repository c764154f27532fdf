// The time that applications of a lattice operator spend on faces, measured inside them.
#pragma once

#include <string>
#include <vector>

#include "onehop/group.h"

namespace onehop::bench {

class FaceClock {
 public:
  // Adds the time that one application of a block took to start and finish its faces.
  void add(double seconds) { of_block_.push_back(1e6 * seconds); }
  // Ends a block. Its time is the median of its applications, so that pauses of a virtual machine do not count.
  void end_block();

  // Returns the µs of an application, averaged over the ranks, for each measured block; shorter ones, which only fill
  // caches, are left out. Collective.
  [[nodiscard]] std::vector<double> us(const Group& group) const;

 private:
  struct Block {
    std::size_t applications = 0;
    double us = 0;
  };
  std::vector<double> of_block_;
  std::vector<Block> blocks_;
};

// The name of these samples for one variant of an operator.
[[nodiscard]] std::string faces_by_clocks(const std::string& variant);

}  // namespace onehop::bench
