#include "quantum/engine/engine_program.h"

#include <algorithm>
#include <atomic>

#include "quantum/engine/engine_direct.h"
#include "quantum/engine/tile_memory.h"
#include "src/base/clock.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {
namespace {

template <typename T>
void run_tiles(const TileProgram<T>& program, std::complex<T>* amplitudes, std::atomic<std::size_t>& next) {
  const std::size_t numbers = program.shape().numbers();
  typename TileProgram<T>::Scratch scratch;
  scratch.tile = tile_memory<T>(program.needs_other() ? 2 * numbers : numbers);
  if (program.needs_other()) scratch.other = scratch.tile + numbers;
  for (std::size_t t = next++; t < program.tiles(); t = next++) program.run(amplitudes, t, scratch);
}

}  // namespace

template <typename T>
EngineProgram<T>::EngineProgram(int bits, std::vector<LocalOperation> operations)
    : bits_(bits),
      operations_(std::move(operations)),
      list_(make_pass_list(bits, operations_, tile_sizes(bits, sizeof(std::complex<T>)))) {
  compile();
}

template <typename T>
void EngineProgram<T>::refill(std::span<const double> angles) {
  for (LocalOperation& operation : operations_) {
    if (operation.varies) set_angle(operation, angles[static_cast<std::size_t>(operation.source)]);
  }
  const TileSizes sizes = tile_sizes(bits_, sizeof(std::complex<T>));
  if (sizes.tile == 0) return;
  Items items = decompose_gates(operations_, bits_, sizes.low, sizes.tile - sizes.low, sizes.matrices);
  // A steep rotation takes another form, with other passes.
  const bool same = items.order == list_.items.order;
  list_.items = std::move(items);
  if (!same) list_.passes = make_passes(list_.items, bits_, sizes);
  compile();
}

template <typename T>
void EngineProgram<T>::compile() {
  programs_.clear();
  programs_.reserve(list_.passes.size());
  for (const Pass& pass : list_.passes) {
    if (pass.tile == 0) continue;
    TileProgram<T>& program = programs_.emplace_back(pass, list_.items, operations_, bits_, kernels<T>());
    for (std::size_t d = 0; d < program.diagonals(); ++d) program.prepare(d);
  }
}

template <typename T>
EngineCounters EngineProgram<T>::run(std::span<std::complex<T>> amplitudes, int threads) const {
  const double begin = base::steady_seconds();
  auto program = programs_.begin();
  for (const Pass& pass : list_.passes) {
    if (pass.tile == 0) {
      apply_directly(amplitudes, operations_[pass.items.front().index], threads);
      continue;
    }
    std::atomic<std::size_t> next{0};
    const int some = static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(threads), program->tiles()));
    if (some == 1) {
      run_tiles(*program, amplitudes.data(), next);
    } else {
      base::ThreadPool(some, base::WaitStyle::sleep).run([&](int) { run_tiles(*program, amplitudes.data(), next); });
    }
    ++program;
  }
  EngineCounters counters;
  counters.passes = static_cast<double>(list_.passes.size());
  counters.operations = static_cast<std::int64_t>(operations_.size());
  counters.seconds = base::steady_seconds() - begin;
  return counters;
}

template class EngineProgram<float>;
template class EngineProgram<double>;

}  // namespace onehop::quantum
