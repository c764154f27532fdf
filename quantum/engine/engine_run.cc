#include "quantum/engine/engine_run.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <exception>

#include "quantum/engine/engine_direct.h"
#include "quantum/engine/engine_tile.h"
#include "quantum/engine/engine_tile_threads.h"
#include "src/base/clock.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {
namespace {

template <typename T>
void run_pass(std::span<std::complex<T>> amplitudes, TileProgram<T>& program, int threads, PassRecord* record) {
  TileThreads<T> work(program, amplitudes.data(), nullptr, threads);
  threads = work.threads();
  std::atomic<std::size_t> next_diagonal{0};
  std::atomic<bool> failed{false};
  base::Barrier barrier(threads);
  std::vector<std::array<double, pass_parts>> parts(record != nullptr ? static_cast<std::size_t>(threads) : 0);
  base::ThreadPool(threads, base::WaitStyle::sleep).run([&](int thread) {
    std::exception_ptr thrown;  // rethrown only after the barrier, at which the other threads wait
    try {
      work.prepare(thread);
      for (std::size_t d = next_diagonal++; d < program.diagonals(); d = next_diagonal++) program.prepare(d);
    } catch (...) {
      thrown = std::current_exception();
      failed = true;
    }
    barrier.wait();
    if (thrown) std::rethrow_exception(thrown);
    if (failed) return;
    if (record == nullptr) return work.run(thread);
    std::array<double, pass_parts>& mine = parts[static_cast<std::size_t>(thread)];
    mine[static_cast<std::size_t>(PassPart::preparing)] = base::steady_seconds() - record->begin;
    work.run(thread, &mine);
  });
  for (const auto& of_thread : parts) {
    for (std::size_t p = 0; p < pass_parts; ++p) record->parts[p] += of_thread[p] / threads;
  }
}

}  // namespace

PassList make_pass_list(int bits, std::span<const LocalOperation> operations, const TileSizes& sizes) {
  for (std::size_t i = 0; i < operations.size(); ++i) check_operation(operations[i], i, bits);
  PassList list;
  if (sizes.tile == 0) {
    for (std::size_t i = 0; i < operations.size(); ++i) {
      list.passes.push_back({0, {{.kind = ItemKind::direct, .index = static_cast<std::uint32_t>(i), .gates = 1}}});
    }
    return list;
  }
  list.items =
      decompose_gates(operations, bits, sizes.low, sizes.tile - sizes.low, sizes.matrices, sizes.steepest_varying);
  list.passes = make_passes(list.items, bits, sizes);
  return list;
}

PassSummary summarize(const Pass& pass) {
  PassSummary summary;
  for (std::uint64_t rest = pass.tile; rest != 0; rest &= rest - 1) summary.tile_bits.push_back(std::countr_zero(rest));
  for (const Item& item : pass.items) {
    summary.gates += static_cast<int>(item.gates);
    summary.rotations += item.kind == ItemKind::butterfly ? 1 : 0;
    summary.pairs += item.kind == ItemKind::pair ? 1 : 0;
    summary.matrices += item.kind == ItemKind::dense ? 1 : 0;
    summary.phases += item.kind == ItemKind::phase ? 1 : 0;
    summary.tables += item.kind == ItemKind::table ? 1 : 0;
  }
  return summary;
}

template <typename T>
void run_passes(std::span<std::complex<T>> amplitudes, std::span<const LocalOperation> operations, const PassList& list,
                const Kernels<T>& kernels, int threads, std::vector<PassRecord>* records) {
  const int bits = std::bit_width(amplitudes.size()) - 1;
  for (const Pass& pass : list.passes) {
    PassRecord* record = nullptr;
    if (records != nullptr) {
      record = &records->emplace_back();
      record->pass = summarize(pass);
      record->begin = base::steady_seconds();
    }
    if (pass.tile == 0) {
      apply_directly(amplitudes, operations[pass.items.front().index], threads);
    } else {
      TileProgram<T> program(pass, list.items, operations, bits, kernels);
      if (record != nullptr) program.describe(record->pass);
      run_pass(amplitudes, program, threads, record);
    }
    if (record != nullptr) record->seconds = base::steady_seconds() - record->begin;
  }
}

template void run_passes<float>(std::span<std::complex<float>>, std::span<const LocalOperation>, const PassList&,
                                const Kernels<float>&, int, std::vector<PassRecord>*);
template void run_passes<double>(std::span<std::complex<double>>, std::span<const LocalOperation>, const PassList&,
                                 const Kernels<double>&, int, std::vector<PassRecord>*);

}  // namespace onehop::quantum
