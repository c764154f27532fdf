// A sum of float32 over all ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/collective.h"
#include "onehop/codec.h"
#include "onehop/collectives/collectives.h"

namespace onehop::measure {

// One setting of onehop to time.
struct AllReduceVariant {
  std::string name;
  Role role = Role::variant;
  Codec codec = Codec::raw;
  ReduceAlgorithm algorithm = ReduceAlgorithm::automatic;
  std::int64_t chunk_bytes = 0;  // 0: onehop chooses
};

struct AllReduceOptions {
  Effort effort;
  std::vector<AllReduceVariant> variants;
  std::vector<OtherOperation> others;
  bool peers = true;
  bool in_place = false;  // each candidate has one array, which is source and result; without codecs
};

struct AllReduceSamples {
  std::vector<Samples> samples;
  // The error of each candidate: the largest error of a result over the largest number of the exact result.
  std::vector<double> errors;
};

// Collective over any group in shared memory.
[[nodiscard]] AllReduceSamples allreduce(const Group& group, std::int64_t bytes, const AllReduceOptions& options);

}  // namespace onehop::measure
