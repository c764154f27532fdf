// The engine with tile sizes, kernels and threads as arguments, which `apply` chooses by itself and tests vary.
#pragma once

#include <complex>
#include <span>

#include "onehop/quantum/engine.h"
#include "quantum/engine/engine_plan.h"
#include "quantum/engine/engine_tile.h"
#include "quantum/engine/gate_decomposition.h"
#include "quantum/kernels/kernels.h"

namespace onehop::quantum {

// The passes for a list of operations. make_pass_list throws BadInput that names the operation if one is invalid.
struct PassList {
  Items items;
  std::vector<Pass> passes;
};
[[nodiscard]] PassList make_pass_list(int bits, std::span<const LocalOperation> operations, const TileSizes& sizes);

// Summarizes a pass without `sweeps` and `multiply_adds`, which depend on the kernels.
[[nodiscard]] PassSummary summarize(const Pass& pass);

// `list` must come from the same operations. `records`: receives a record of each pass; nullptr: nothing is timed.
template <typename T>
void run_passes(std::span<std::complex<T>> amplitudes, std::span<const LocalOperation> operations, const PassList& list,
                const Kernels<T>& kernels, int threads, std::vector<PassRecord>* records = nullptr);

// The same for two states at once, with derivatives: see `apply_to_both`. `sizes` must be those of `list`. Returns the
// multiply-adds per amplitude of one state.
template <typename T>
double run_passes_of_two(std::span<std::complex<T>> ket, std::span<std::complex<T>> bra,
                         std::span<const LocalOperation> operations, const PassList& list, const TileSizes& sizes,
                         const Kernels<T>& kernels, int threads, std::span<double> derivatives);

// One pass of it: a prepared program, and an operation that fits no tile.
template <typename T>
void run_tiles_of_two(std::span<std::complex<T>> ket, std::span<std::complex<T>> bra, const TileProgram<T>& program,
                      int threads, std::span<double> derivatives);
template <typename T>
void apply_directly_to_both(std::span<std::complex<T>> ket, std::span<std::complex<T>> bra, const LocalOperation& op,
                            const TileSizes& sizes, int threads, std::span<double> derivatives);

extern template void run_passes<float>(std::span<std::complex<float>>, std::span<const LocalOperation>, const PassList&,
                                       const Kernels<float>&, int, std::vector<PassRecord>*);
extern template void run_passes<double>(std::span<std::complex<double>>, std::span<const LocalOperation>,
                                        const PassList&, const Kernels<double>&, int, std::vector<PassRecord>*);

}  // namespace onehop::quantum
