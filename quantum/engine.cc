#include "onehop/quantum/engine.h"

#include <bit>
#include <chrono>
#include <string>

#include "engine_run.h"
#include "engine_threads.h"
#include "onehop/error.h"

namespace onehop::quantum {

template <typename T>
EngineCounters apply(std::span<std::complex<T>> amplitudes, std::span<const LocalOperation> operations,
                     const EngineOptions& options) {
  if (!std::has_single_bit(amplitudes.size())) {
    throw BadInput("expected a power of two of amplitudes, found " + std::to_string(amplitudes.size()));
  }
  const int bits = std::bit_width(amplitudes.size()) - 1;
  const int threads = thread_count(options.threads);
  const auto begin = std::chrono::steady_clock::now();
  const PassList list = make_pass_list(bits, operations, tile_sizes(bits, sizeof(std::complex<T>)));
  run_passes<T>(amplitudes, operations, list, kernels<T>(), threads);
  EngineCounters counters;
  counters.passes = static_cast<double>(list.passes.size());
  counters.operations = static_cast<std::int64_t>(operations.size());
  counters.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return counters;
}

template EngineCounters apply<float>(std::span<std::complex<float>>, std::span<const LocalOperation>,
                                     const EngineOptions&);
template EngineCounters apply<double>(std::span<std::complex<double>>, std::span<const LocalOperation>,
                                      const EngineOptions&);

double count_passes(int bits, std::span<const LocalOperation> operations, int bytes_per_amplitude) {
  return static_cast<double>(make_pass_list(bits, operations, tile_sizes(bits, bytes_per_amplitude)).passes.size());
}

std::vector<PassSummary> summarize_passes(int bits, std::span<const LocalOperation> operations,
                                          int bytes_per_amplitude) {
  std::vector<PassSummary> summaries;
  for (const Pass& pass : make_pass_list(bits, operations, tile_sizes(bits, bytes_per_amplitude)).passes) {
    PassSummary& summary = summaries.emplace_back();
    for (int bit = 0; bit < bits; ++bit) {
      if ((pass.tile >> bit & 1) != 0) summary.tile_bits.push_back(bit);
    }
    for (const Item& item : pass.items) {
      summary.rotations += item.kind == ItemKind::butterfly ? 1 : 0;
      summary.pairs += item.kind == ItemKind::pair ? 1 : 0;
      summary.matrices += item.kind == ItemKind::dense ? 1 : 0;
      summary.phases += item.kind == ItemKind::phase ? 1 : 0;
      summary.tables += item.kind == ItemKind::table ? 1 : 0;
    }
  }
  return summaries;
}

}  // namespace onehop::quantum
