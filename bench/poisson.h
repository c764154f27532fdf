// `onehop bench poisson`: one iteration of the Poisson solver, in several variants of the face exchange.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/rounds.h"

namespace onehop::bench {

struct PoissonBenchOptions {
  Effort effort;
  std::int64_t local = 60;       // sites of a rank's block in each dimension
  std::int64_t enlargement = 1;  // of the messages
  bool peers = true;
};

// Collective over any group in shared memory. Samples are µs of one iteration: with double buffering ("onehop"), single
// buffering, plain MPI, and with no communication at all (the speed of light). All that communicate must find the same solution.
[[nodiscard]] std::vector<Samples> poisson(const Group& group, const PoissonBenchOptions& options);

}  // namespace onehop::bench
