// The engine with its choices open: what `apply` in onehop/quantum/engine.h decides by itself, and tests vary.
#pragma once

#include <complex>
#include <span>

#include "onehop/quantum/engine.h"
#include "quantum/engine/engine_plan.h"
#include "quantum/engine/gate_decomposition.h"
#include "quantum/kernels/kernels.h"

namespace onehop::quantum {

// The passes of a list of operations. Throws BadInput, naming the operation, for one that makes no sense.
struct PassList {
  Items items;
  std::vector<Pass> passes;
};
[[nodiscard]] PassList make_pass_list(int bits, std::span<const LocalOperation> operations, const TileSizes& sizes);

// What goes into a pass, without what kernels make of it.
[[nodiscard]] PassSummary summarize(const Pass& pass);

// `list` must come from the same operations. `records`: where to write down each pass, or nullptr.
template <typename T>
void run_passes(std::span<std::complex<T>> amplitudes, std::span<const LocalOperation> operations, const PassList& list,
                const Kernels<T>& kernels, int threads, std::vector<PassRecord>* records = nullptr);

extern template void run_passes<float>(std::span<std::complex<float>>, std::span<const LocalOperation>, const PassList&,
                                       const Kernels<float>&, int, std::vector<PassRecord>*);
extern template void run_passes<double>(std::span<std::complex<double>>, std::span<const LocalOperation>,
                                        const PassList&, const Kernels<double>&, int, std::vector<PassRecord>*);

}  // namespace onehop::quantum
