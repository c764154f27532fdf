// The engine with tile sizes, kernels and threads as arguments, which `apply` chooses by itself and tests vary.
#pragma once

#include <bit>
#include <complex>
#include <span>

#include "onehop/quantum/engine.h"
#include "quantum/engine/encoded_amplitudes.h"
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

// The states of a pass: one, or two with the derivatives to which the products of both are added (`apply_to_both`).
template <typename T>
struct EngineStates {
  std::span<std::complex<T>> ket = {};
  std::span<std::complex<T>> bra = {};  // empty: one state
  std::span<double> derivatives = {};
  EncodedAmplitudes* encoded = nullptr;  // instead of `ket`, in single precision

  [[nodiscard]] int bits() const { return encoded != nullptr ? encoded->bits() : std::bit_width(ket.size()) - 1; }
};

// `list` must come from the same operations and sizes. `records`: receives a record of each pass; nullptr: nothing is
// timed. Returns the multiply-adds per amplitude of one of two states.
template <typename T>
double run_passes(const EngineStates<T>& states, std::span<const LocalOperation> operations, const PassList& list,
                  const TileSizes& sizes, const Kernels<T>& kernels, int threads,
                  std::vector<PassRecord>* records = nullptr);

// A pass of an operation that fits no tile.
template <typename T>
void run_directly(const EngineStates<T>& states, const LocalOperation& op, const TileSizes& sizes, int threads);

}  // namespace onehop::quantum
