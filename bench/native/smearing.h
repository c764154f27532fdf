// `onehop bench smearing`: computes the fat and long links of staggered quarks from a gauge field's links.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/native/measure.h"

namespace onehop::bench {

enum class SmearingKind { fat7, asqtad, hisq };
[[nodiscard]] SmearingKind smearing_kind_from_string(const std::string& name);

struct SmearingBenchOptions {
  Effort effort;
  std::array<std::int64_t, 4> extents{12, 12, 12, 12};  // of the whole lattice
  SmearingKind kind = SmearingKind::hisq;
  bool single = false;  // single-precision arithmetic
};

// Samples are µs of one call of fat_links or hisq_links, including its allocations and preparations ("onehop"), and of
// code for one site at a time on a lattice of this rank's block ("scalar code"). The speed of light is the time to read
// the links and write the result once, with as many threads. Collective over any group in shared memory.
[[nodiscard]] std::vector<Samples> smearing(const Group& group, const SmearingBenchOptions& options);

// Flops of one rank as the MILC code counts them (61632 per site for every level of fat links, whatever their paths,
// and 1804 for the long links), and the bytes of the links read and written in double precision.
struct SmearingWork {
  double flops = 0;
  double bytes = 0;
};
[[nodiscard]] SmearingWork smearing_work(const SmearingBenchOptions& options, int ranks);

}  // namespace onehop::bench
