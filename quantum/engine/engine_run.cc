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

constexpr std::uint64_t grain = std::uint64_t{1} << 13;

// Im <bra| Q P |ket> of an operation, from memory.
template <typename T>
double product_of(const EngineStates<T>& states, const LocalOperation& op, int threads) {
  // P|i> = i^ys (-1)^parity(i & z) |i ^ x>.
  const int ys = std::popcount(op.x_mask & op.z_mask) % 4;
  std::vector<double> sums((states.ket.size() + grain - 1) / grain);
  base::parallel_for(threads, states.ket.size(), grain, [&](std::uint64_t begin, std::uint64_t end) {
    double re = 0;
    double im = 0;
    for (std::uint64_t i = begin; i < end; ++i) {
      if ((i & op.control_mask) != op.control_values) continue;
      const std::complex<double> left(states.bra[i ^ op.x_mask]);
      const std::complex<double> right(states.ket[i]);
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

template <typename T>
void run_pass(const EngineStates<T>& states, TileProgram<T>& program, int threads, PassRecord* record) {
  TileThreads<T> work(program, states, threads);
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
  work.finish();
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
void run_directly(const EngineStates<T>& states, const LocalOperation& op, const TileSizes& sizes, int threads) {
  const std::uint64_t low = (std::uint64_t{1} << sizes.low) - 1;
  // With tiles, an operation whose string fits one has its probe there.
  const bool alone = sizes.tile == 0 || std::popcount(op.x_mask & ~low) > sizes.tile - sizes.low;
  if (op.probe >= 0 && alone && !states.bra.empty()) {
    const double factor = op.kind == LocalKind::pauli_rotation ? op.weight : -2 * op.weight;
    states.derivatives[static_cast<std::size_t>(op.probe)] += factor * product_of(states, op, threads);
  }
  apply_directly(states.ket, op, threads);
  if (!states.bra.empty()) apply_directly(states.bra, op, threads);
}

template <typename T>
double run_passes(const EngineStates<T>& states, std::span<const LocalOperation> operations, const PassList& list,
                  const TileSizes& sizes, const Kernels<T>& kernels, int threads, std::vector<PassRecord>* records) {
  const int bits = states.bits();
  double multiply_adds = 0;
  for (const Pass& pass : list.passes) {
    PassRecord* record = nullptr;
    if (records != nullptr) {
      record = &records->emplace_back();
      record->pass = summarize(pass);
      record->begin = base::steady_seconds();
    }
    if (pass.tile == 0) {
      run_directly(states, operations[pass.items.front().index], sizes, threads);
    } else {
      TileProgram<T> program(pass, list.items, operations, bits, kernels, states.encoded == nullptr);
      if (record != nullptr) program.describe(record->pass);
      multiply_adds += program.multiply_adds_of_two();
      run_pass(states, program, threads, record);
    }
    if (record != nullptr) record->seconds = base::steady_seconds() - record->begin;
  }
  return multiply_adds;
}

#define ONEHOP_INSTANTIATE(T)                                                                          \
  template void run_directly(const EngineStates<T>&, const LocalOperation&, const TileSizes&, int);    \
  template double run_passes(const EngineStates<T>&, std::span<const LocalOperation>, const PassList&, \
                             const TileSizes&, const Kernels<T>&, int, std::vector<PassRecord>*);
ONEHOP_INSTANTIATE(float)
ONEHOP_INSTANTIATE(double)
#undef ONEHOP_INSTANTIATE

}  // namespace onehop::quantum
