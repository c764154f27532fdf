// How long applications of a lattice operator are busy with faces, by clocks in them: what benchmarks print beside whole times.
#pragma once

#include <string>
#include <vector>

#include "onehop/group.h"

namespace onehop::bench {

class FaceClock {
 public:
  // What one application of a block took for starting and finishing its faces.
  void add(double seconds) { of_block_.push_back(1e6 * seconds); }
  // The block is over: the median of its applications counts, as a stop of a virtual machine is no waiting for faces.
  void end_block();

  // µs of an application, one for each block that was measured (what is run between them, to fill caches, is shorter), mean of all ranks.
  // Collective.
  [[nodiscard]] std::vector<double> us(const Group& group) const;

 private:
  struct Block {
    std::size_t applications = 0;
    double us = 0;
  };
  std::vector<double> of_block_;
  std::vector<Block> blocks_;
};

// The name of these samples, for one variant of an operator.
[[nodiscard]] std::string faces_by_clocks(const std::string& variant);

}  // namespace onehop::bench
