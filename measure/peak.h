// The peak rate of arithmetic.
#pragma once

namespace onehop::measure {

// GFLOP/s of one thread that executes only fused multiply-adds on this processor's widest vectors.
[[nodiscard]] double peak_gflops(bool single);

}  // namespace onehop::measure
