// The limit of what reads more than it computes.
#pragma once

#include <cstddef>

namespace onehop::bench {

// Reads all of it with several streams at once, as fast as it comes. Their sum.
[[nodiscard]] double read_all(const double* from, std::size_t count);

}  // namespace onehop::bench
