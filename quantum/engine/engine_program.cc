#include "quantum/engine/engine_program.h"

#include "quantum/engine/engine_tile_threads.h"
#include "src/base/clock.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {

template <typename T>
EngineProgram<T>::EngineProgram(int bits, std::vector<LocalOperation> operations, States states, int threads)
    : bits_(bits),
      sizes_(states == States::one ? tile_sizes(bits, sizeof(std::complex<T>))
                                   : tile_sizes_of_two(bits, sizeof(std::complex<T>))),
      operations_(std::move(operations)),
      list_(make_pass_list(bits, operations_, sizes_)) {
  compile(threads);
}

template <typename T>
void EngineProgram<T>::refill(std::span<const double> angles, int threads) {
  for (LocalOperation& operation : operations_) {
    if (operation.varies) set_angle(operation, angles[static_cast<std::size_t>(operation.source)]);
  }
  if (sizes_.tile == 0) return;
  if (refresh(list_.items, operations_)) {
    base::parallel_for(threads, programs_.size(), 1, [&](std::uint64_t p, std::uint64_t) {
      if (programs_[p] != nullptr && !programs_[p]->refill(list_.items)) make(p);
    });
    return;
  }
  Items items = decompose_gates(operations_, bits_, sizes_.low, sizes_.tile - sizes_.low, sizes_.matrices,
                                sizes_.steepest_varying);
  // A steep rotation takes another form, with other passes.
  const bool same = items.order == list_.items.order;
  list_.items = std::move(items);
  if (!same) list_.passes = make_passes(list_.items, bits_, sizes_);
  compile(threads);
}

template <typename T>
void EngineProgram<T>::compile(int threads) {
  programs_.resize(list_.passes.size());
  base::parallel_for(threads, list_.passes.size(), 1, [&](std::uint64_t p, std::uint64_t) { make(p); });
}

template <typename T>
void EngineProgram<T>::make(std::size_t number) {
  const Pass& pass = list_.passes[number];
  programs_[number].reset();
  if (pass.tile == 0) return;
  programs_[number] = std::make_unique<TileProgram<T>>(pass, list_.items, operations_, bits_, kernels<T>());
  for (std::size_t d = 0; d < programs_[number]->diagonals(); ++d) programs_[number]->prepare(d);
}

template <typename T>
EngineCounters EngineProgram<T>::run(const EngineStates<T>& states, int threads) const {
  const double begin = base::steady_seconds();
  EngineCounters counters;
  for (std::size_t p = 0; p < programs_.size(); ++p) {
    const TileProgram<T>* const program = programs_[p].get();
    if (program == nullptr) {
      run_directly(states, operations_[list_.passes[p].items.front().index], sizes_, threads);
      continue;
    }
    counters.multiply_adds += program->multiply_adds_of_two();
    TileThreads<T>(*program, states, threads).run_all();
  }
  counters.passes = static_cast<double>(list_.passes.size());
  counters.operations = static_cast<std::int64_t>(operations_.size());
  counters.seconds = base::steady_seconds() - begin;
  return counters;
}

template class EngineProgram<float>;
template class EngineProgram<double>;

}  // namespace onehop::quantum
