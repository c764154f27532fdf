#include "engine_run.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <exception>
#include <memory>
#include <new>

#include "engine_direct.h"
#include "engine_threads.h"
#include "engine_tile.h"

namespace onehop::quantum {
namespace {

struct AlignedDelete {
  void operator()(void* memory) const { ::operator delete[](memory, std::align_val_t(64)); }
};

template <typename T>
void run_pass(std::span<std::complex<T>> amplitudes, TileProgram<T>& program, int threads) {
  const std::size_t tiles = program.tiles();
  threads = static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(threads), tiles));
  std::atomic<std::size_t> next_diagonal{0};
  std::atomic<std::size_t> next_tile{0};
  std::atomic<bool> failed{false};
  Barrier barrier(threads);
  run_together(threads, [&](int) {
    std::unique_ptr<T[], AlignedDelete> tile;
    std::exception_ptr thrown;  // all meet at the barrier first
    try {
      tile.reset(new (std::align_val_t(64)) T[program.shape().numbers()]);
      for (std::size_t d = next_diagonal++; d < program.diagonals(); d = next_diagonal++) program.prepare(d);
    } catch (...) {
      thrown = std::current_exception();
      failed = true;
    }
    barrier.wait();
    if (thrown) std::rethrow_exception(thrown);
    if (failed) return;
    typename TileProgram<T>::Scratch scratch;
    scratch.tile = tile.get();
    for (std::size_t t = next_tile++; t < tiles; t = next_tile++) program.run(amplitudes.data(), t, scratch);
  });
}

}  // namespace

PassList make_pass_list(int bits, std::span<const LocalOperation> operations, const TileSizes& sizes) {
  for (std::size_t i = 0; i < operations.size(); ++i) check_operation(operations[i], i, bits);
  PassList list;
  if (sizes.tile == 0) {
    for (std::size_t i = 0; i < operations.size(); ++i) {
      list.passes.push_back({0, {{.kind = ItemKind::direct, .index = static_cast<std::uint32_t>(i)}}});
    }
    return list;
  }
  list.items = make_items(operations, bits, sizes.low, sizes.tile - sizes.low);
  list.passes = make_passes(list.items, bits, sizes);
  return list;
}

template <typename T>
void run_passes(std::span<std::complex<T>> amplitudes, std::span<const LocalOperation> operations, const PassList& list,
                const Kernels<T>& kernels, int threads) {
  const int bits = std::bit_width(amplitudes.size()) - 1;
  for (const Pass& pass : list.passes) {
    if (pass.tile == 0) {
      apply_directly(amplitudes, operations[pass.items.front().index], threads);
    } else {
      TileProgram<T> program(pass, list.items, operations, bits, kernels);
      run_pass(amplitudes, program, threads);
    }
  }
}

template void run_passes<float>(std::span<std::complex<float>>, std::span<const LocalOperation>, const PassList&,
                                const Kernels<float>&, int);
template void run_passes<double>(std::span<std::complex<double>>, std::span<const LocalOperation>, const PassList&,
                                 const Kernels<double>&, int);

}  // namespace onehop::quantum
