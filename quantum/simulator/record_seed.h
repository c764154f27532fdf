// The seed of the samples at the end of a run with a record, so that runs with different records draw independently.
#pragma once

#include <cstdint>
#include <span>

namespace onehop::quantum {

[[nodiscard]] std::uint64_t record_seed(std::uint64_t seed, std::span<const int> record);

}  // namespace onehop::quantum
