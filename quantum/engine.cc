#include "onehop/quantum/engine.h"

#include <bit>
#include <chrono>
#include <string>

#include "engine_direct.h"
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
  for (std::size_t i = 0; i < operations.size(); ++i) check_operation(operations[i], i, bits);
  const int threads = thread_count(options.threads);
  const auto begin = std::chrono::steady_clock::now();
  for (const LocalOperation& operation : operations) apply_directly(amplitudes, operation, threads);
  EngineCounters counters;
  counters.passes = count_passes(bits, operations, sizeof(std::complex<T>));
  counters.operations = static_cast<std::int64_t>(operations.size());
  counters.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return counters;
}

template EngineCounters apply<float>(std::span<std::complex<float>>, std::span<const LocalOperation>,
                                     const EngineOptions&);
template EngineCounters apply<double>(std::span<std::complex<double>>, std::span<const LocalOperation>,
                                      const EngineOptions&);

double count_passes(int bits, std::span<const LocalOperation> operations, int /*bytes_per_amplitude*/) {
  for (std::size_t i = 0; i < operations.size(); ++i) check_operation(operations[i], i, bits);
  return static_cast<double>(operations.size());
}

}  // namespace onehop::quantum
