// One iteration of the Poisson solver, in several variants of the face exchange.
#pragma once

#include <cstdint>
#include <vector>

#include "measure/rounds.h"

namespace onehop::measure {

struct PoissonBenchOptions {
  Effort effort;
  std::int64_t local = 60;       // sites of a rank's block in each dimension
  std::int64_t enlargement = 1;  // length of a message as a multiple of the length of its face
  bool peers = true;
};

// Samples are µs of one iteration: with double buffering ("onehop"), single buffering, plain MPI, and no communication
// (the speed of light). All others must find the same solution. Collective over any group in shared memory.
[[nodiscard]] std::vector<Samples> poisson(const Group& group, const PoissonBenchOptions& options);

}  // namespace onehop::measure
