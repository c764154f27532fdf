#include "onehop/quantum/engine.h"

#include <algorithm>
#include <bit>
#include <complex>
#include <string>

#include "onehop/error.h"
#include "quantum/engine/engine_run.h"
#include "quantum/engine/engine_tile.h"
#include "src/base/clock.h"
#include "src/base/thread_count.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {

void set_angle(LocalOperation& operation, double angle) {
  if (operation.kind == LocalKind::pauli_rotation) {
    operation.angle = operation.weight * angle;
  } else {
    operation.values.front() = std::polar(1.0, operation.weight * angle);
  }
}

const char* name_of(PassPart part) {
  static constexpr std::array<const char*, pass_parts> names = {"preparing", "gather",    "rotations", "pairs",
                                                                "matrices",  "diagonals", "scatter"};
  return names[static_cast<std::size_t>(part)];
}

namespace {

void check_probes(std::span<const LocalOperation> operations, std::size_t derivatives) {
  for (const LocalOperation& op : operations) {
    if (op.probe >= 0 && (!op.varies || static_cast<std::size_t>(op.probe) >= derivatives)) {
      throw BadInput("expected probes below " + std::to_string(derivatives) + " of operations that vary, found " +
                     std::to_string(op.probe));
    }
  }
}

template <typename T>
EngineCounters apply_to(const EngineStates<T>& states, std::span<const LocalOperation> operations,
                        TileSizes (*sizes_of)(int bits, int bytes_per_amplitude), const EngineOptions& options) {
  const int bits = std::bit_width(states.ket.size()) - 1;
  const int threads = base::thread_count(options.threads);
  const double begin = base::steady_seconds();
  const TileSizes sizes = sizes_of(bits, sizeof(std::complex<T>));
  const PassList list = make_pass_list(bits, operations, sizes);
  EngineCounters counters;
  counters.planning_seconds = base::steady_seconds() - begin;
  counters.multiply_adds = run_passes<T>(states, operations, list, sizes, kernels<T>(), threads, options.records);
  counters.passes = static_cast<double>(list.passes.size());
  counters.operations = static_cast<std::int64_t>(operations.size());
  counters.seconds = base::steady_seconds() - begin;
  return counters;
}

}  // namespace

template <typename T>
EngineCounters apply(std::span<std::complex<T>> amplitudes, std::span<const LocalOperation> operations,
                     const EngineOptions& options) {
  if (!std::has_single_bit(amplitudes.size())) {
    throw BadInput("expected a number of amplitudes that is a power of two, found " +
                   std::to_string(amplitudes.size()));
  }
  return apply_to<T>({amplitudes}, operations, tile_sizes, options);
}

template <typename T>
EngineCounters apply_to_both(std::span<std::complex<T>> ket, std::span<std::complex<T>> bra,
                             std::span<const LocalOperation> operations, std::span<double> derivatives,
                             const EngineOptions& options) {
  if (!std::has_single_bit(ket.size()) || ket.size() != bra.size()) {
    throw BadInput("expected two states of equal size, a power of two, found " + std::to_string(ket.size()) + " and " +
                   std::to_string(bra.size()));
  }
  check_probes(operations, derivatives.size());
  return apply_to<T>({ket, bra, derivatives}, operations, tile_sizes_of_two, {.threads = options.threads});
}

double count_passes(int bits, std::span<const LocalOperation> operations, int bytes_per_amplitude) {
  return static_cast<double>(make_pass_list(bits, operations, tile_sizes(bits, bytes_per_amplitude)).passes.size());
}

std::vector<PassSummary> summarize_passes(int bits, std::span<const LocalOperation> operations, int bytes_per_amplitude,
                                          bool on_device) {
  constexpr int least_tile = 9;  // of a program of the processor, whose multiply-adds are counted
  const TileSizes sizes = on_device && bits >= least_tile ? device_tile_sizes(bits, bytes_per_amplitude > 8)
                                                          : tile_sizes(bits, bytes_per_amplitude);
  const PassList list = make_pass_list(bits, operations, sizes);
  std::vector<PassSummary> summaries;
  for (const Pass& pass : list.passes) {
    PassSummary& summary = summaries.emplace_back(summarize(pass));
    if (pass.tile == 0) continue;
    if (bytes_per_amplitude > 8) {
      TileProgram<double>(pass, list.items, operations, bits, kernels<double>()).describe(summary);
    } else {
      TileProgram<float>(pass, list.items, operations, bits, kernels<float>()).describe(summary);
    }
  }
  return summaries;
}

template <typename T>
double pass_seconds(std::span<std::complex<T>> amplitudes, const EngineOptions& options) {
  constexpr std::uint64_t piece = std::uint64_t{1} << 16;
  constexpr int rounds = 6;  // even
  double best = 1e300;
  for (int round = 0; round < rounds; ++round) {
    const double begin = base::steady_seconds();
    base::parallel_for(base::thread_count(options.threads), amplitudes.size(), piece,
                       [&](std::uint64_t from, std::uint64_t to) {
                         T* const numbers = reinterpret_cast<T*>(amplitudes.data());
                         for (std::uint64_t i = 2 * from; i < 2 * to; ++i) numbers[i] = -numbers[i];
                       });
    best = std::min(best, base::steady_seconds() - begin);
  }
  return best;
}

#define ONEHOP_INSTANTIATE(T)                                                                                       \
  template EngineCounters apply(std::span<std::complex<T>>, std::span<const LocalOperation>, const EngineOptions&); \
  template EngineCounters apply_to_both(std::span<std::complex<T>>, std::span<std::complex<T>>,                     \
                                        std::span<const LocalOperation>, std::span<double>, const EngineOptions&);  \
  template double pass_seconds(std::span<std::complex<T>>, const EngineOptions&);
ONEHOP_INSTANTIATE(float)
ONEHOP_INSTANTIATE(double)
#undef ONEHOP_INSTANTIATE

}  // namespace onehop::quantum
