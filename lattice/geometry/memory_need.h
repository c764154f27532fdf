// Compares the memory that a computation on a lattice is about to take with what is left.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "onehop/memory.h"

namespace onehop::lattice::detail {

// An allowance for tables, stacks of threads and the heap's own memory, which an estimate leaves out.
inline constexpr double memory_margin = 1.1;
inline constexpr double matrix_bytes = 18 * sizeof(double);  // a 3x3 matrix of complex numbers

// Throws Error on all ranks if a machine or control group has too little memory left for `bytes` on this rank. `what`
// names the computation in the message. Collective.
inline void require_memory_for(const Group& group, std::span<const std::int64_t> extents, double bytes,
                               const std::string& what) {
  std::string lattice;
  for (const std::int64_t extent : extents) lattice += (lattice.empty() ? "" : "x") + std::to_string(extent);
  require_memory(group, static_cast<std::int64_t>(std::min(memory_margin * bytes, 0x1p62)),
                 what + " on a lattice of " + lattice, "take a smaller lattice, or more machines");
}

}  // namespace onehop::lattice::detail
