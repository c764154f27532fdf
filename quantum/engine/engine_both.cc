// Applies operations to a ket and a bra at once, with the derivatives of expectation values.
#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "quantum/engine/engine_direct.h"
#include "quantum/engine/engine_run.h"
#include "quantum/engine/engine_tile.h"
#include "quantum/engine/engine_tile_threads.h"
#include "src/base/clock.h"
#include "src/base/thread_count.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {
namespace {

constexpr std::uint64_t grain = std::uint64_t{1} << 13;

// Im <bra| Q P |ket> of an operation, from memory.
template <typename T>
double product_of(std::span<const std::complex<T>> ket, std::span<const std::complex<T>> bra, const LocalOperation& op,
                  int threads) {
  // P|i> = i^ys (-1)^parity(i & z) |i ^ x>.
  const int ys = std::popcount(op.x_mask & op.z_mask) % 4;
  std::vector<double> sums((ket.size() + grain - 1) / grain);
  base::parallel_for(threads, ket.size(), grain, [&](std::uint64_t begin, std::uint64_t end) {
    double re = 0;
    double im = 0;
    for (std::uint64_t i = begin; i < end; ++i) {
      if ((i & op.control_mask) != op.control_values) continue;
      const std::complex<double> left(bra[i ^ op.x_mask]);
      const std::complex<double> right(ket[i]);
      const double sign = std::popcount(i & op.z_mask) % 2 != 0 ? -1 : 1;
      re += sign * (left.real() * right.real() + left.imag() * right.imag());
      im += sign * (left.real() * right.imag() - left.imag() * right.real());
    }
    const double parts[] = {im, re, -im, -re};
    sums[begin / grain] = parts[ys];
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

void check(std::span<const LocalOperation> operations, std::size_t ket, std::size_t bra, std::size_t derivatives) {
  if (!std::has_single_bit(ket) || ket != bra) {
    throw BadInput("expected two states of equal size, a power of two, found " + std::to_string(ket) + " and " +
                   std::to_string(bra));
  }
  for (const LocalOperation& op : operations) {
    if (op.probe >= 0 && (!op.varies || static_cast<std::size_t>(op.probe) >= derivatives)) {
      throw BadInput("expected probes below " + std::to_string(derivatives) + " of operations that vary, found " +
                     std::to_string(op.probe));
    }
  }
}

}  // namespace

template <typename T>
void run_tiles_of_two(std::span<std::complex<T>> ket, std::span<std::complex<T>> bra, const TileProgram<T>& program,
                      int threads, std::span<double> derivatives) {
  const std::size_t parts = program.tiles() * program.parts();
  const std::size_t probes = program.probes().size();
  std::vector<double> sums(parts * probes);
  TileThreads<T>(program, ket.data(), bra.data(), threads, sums.data()).run_all();
  // In the order of parts, so that the result does not depend on the threads.
  for (std::size_t t = 0; t < parts; ++t) {
    for (std::size_t p = 0; p < probes; ++p) {
      derivatives[static_cast<std::size_t>(program.probes()[p])] += program.probe_scales()[p] * sums[t * probes + p];
    }
  }
}

template <typename T>
void apply_directly_to_both(std::span<std::complex<T>> ket, std::span<std::complex<T>> bra, const LocalOperation& op,
                            const TileSizes& sizes, int threads, std::span<double> derivatives) {
  const std::uint64_t low = (std::uint64_t{1} << sizes.low) - 1;
  // With tiles, an operation whose string fits one has its probe there.
  const bool alone = sizes.tile == 0 || std::popcount(op.x_mask & ~low) > sizes.tile - sizes.low;
  if (op.probe >= 0 && alone) {
    const double factor = op.kind == LocalKind::pauli_rotation ? op.weight : -2 * op.weight;
    derivatives[static_cast<std::size_t>(op.probe)] += factor * product_of<T>(ket, bra, op, threads);
  }
  apply_directly(ket, op, threads);
  apply_directly(bra, op, threads);
}

template <typename T>
double run_passes_of_two(std::span<std::complex<T>> ket, std::span<std::complex<T>> bra,
                         std::span<const LocalOperation> operations, const PassList& list, const TileSizes& sizes,
                         const Kernels<T>& kernels, int threads, std::span<double> derivatives) {
  double multiply_adds = 0;
  const int bits = std::bit_width(ket.size()) - 1;
  for (const Pass& pass : list.passes) {
    if (pass.tile == 0) {
      apply_directly_to_both<T>(ket, bra, operations[pass.items.front().index], sizes, threads, derivatives);
      continue;
    }
    TileProgram<T> program(pass, list.items, operations, bits, kernels);
    base::parallel_for(threads, program.diagonals(), 1, [&](std::uint64_t d, std::uint64_t) { program.prepare(d); });
    multiply_adds += program.multiply_adds_of_two();
    run_tiles_of_two<T>(ket, bra, program, threads, derivatives);
  }
  return multiply_adds;
}

template void run_tiles_of_two<float>(std::span<std::complex<float>>, std::span<std::complex<float>>,
                                      const TileProgram<float>&, int, std::span<double>);
template void run_tiles_of_two<double>(std::span<std::complex<double>>, std::span<std::complex<double>>,
                                       const TileProgram<double>&, int, std::span<double>);
template void apply_directly_to_both<float>(std::span<std::complex<float>>, std::span<std::complex<float>>,
                                            const LocalOperation&, const TileSizes&, int, std::span<double>);
template void apply_directly_to_both<double>(std::span<std::complex<double>>, std::span<std::complex<double>>,
                                             const LocalOperation&, const TileSizes&, int, std::span<double>);
template double run_passes_of_two<float>(std::span<std::complex<float>>, std::span<std::complex<float>>,
                                         std::span<const LocalOperation>, const PassList&, const TileSizes&,
                                         const Kernels<float>&, int, std::span<double>);
template double run_passes_of_two<double>(std::span<std::complex<double>>, std::span<std::complex<double>>,
                                          std::span<const LocalOperation>, const PassList&, const TileSizes&,
                                          const Kernels<double>&, int, std::span<double>);

template <typename T>
EngineCounters apply_to_both(std::span<std::complex<T>> ket, std::span<std::complex<T>> bra,
                             std::span<const LocalOperation> operations, std::span<double> derivatives,
                             const EngineOptions& options) {
  check(operations, ket.size(), bra.size(), derivatives.size());
  const int bits = std::bit_width(ket.size()) - 1;
  const int threads = base::thread_count(options.threads);
  const double begin = base::steady_seconds();
  const TileSizes sizes = tile_sizes_of_two(bits, sizeof(std::complex<T>));
  const PassList list = make_pass_list(bits, operations, sizes);
  EngineCounters counters;
  counters.planning_seconds = base::steady_seconds() - begin;
  counters.multiply_adds = run_passes_of_two<T>(ket, bra, operations, list, sizes, kernels<T>(), threads, derivatives);
  counters.passes = static_cast<double>(list.passes.size());
  counters.operations = static_cast<std::int64_t>(operations.size());
  counters.seconds = base::steady_seconds() - begin;
  return counters;
}

template EngineCounters apply_to_both<float>(std::span<std::complex<float>>, std::span<std::complex<float>>,
                                             std::span<const LocalOperation>, std::span<double>, const EngineOptions&);
template EngineCounters apply_to_both<double>(std::span<std::complex<double>>, std::span<std::complex<double>>,
                                              std::span<const LocalOperation>, std::span<double>, const EngineOptions&);

}  // namespace onehop::quantum
