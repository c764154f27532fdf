// Runs a tile program on several threads, which take whole tiles, or share the only one.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <complex>
#include <cstddef>
#include <span>
#include <vector>

#include "quantum/engine/engine_tile.h"
#include "quantum/engine/tile_memory.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {

template <typename T>
class TileThreads {
 public:
  // `bra`: nullptr with one state. `sums`: program.probes() zeros for each part of each tile, in this order; nullptr
  // with one state. The program must outlive this object.
  TileThreads(const TileProgram<T>& program, std::complex<T>* ket, std::complex<T>* bra, int threads,
              double* sums = nullptr)
      : program_(program),
        ket_(ket),
        bra_(bra),
        sums_(sums),
        threads_(static_cast<int>(std::min(program.tiles() * program.parts(), static_cast<std::size_t>(threads)))),
        barrier_(threads_),
        scratches_(static_cast<std::size_t>(threads_)) {
    const bool shares = program.parts() > 1;
    for (std::size_t thread = 0; thread < scratches_.size(); ++thread) {
      const std::size_t first = shares ? program.parts() * thread / scratches_.size() : 0;
      const std::size_t last = shares ? program.parts() * (thread + 1) / scratches_.size() : 1;
      for (std::size_t part = first; part < last; ++part) {
        scratches_[thread].emplace_back().part = part;
        program.prepare_scratch(scratches_[thread].back());
      }
    }
    if (shares) {
      T* const memory = own_memory();
      for (auto& of_thread : scratches_) place(of_thread, memory);
    }
  }

  // The number of threads that can help.
  [[nodiscard]] int threads() const { return threads_; }

  // Each thread calls it before run(). It may throw, for want of memory.
  void prepare(int thread) {
    if (program_.parts() == 1) place(scratches_[static_cast<std::size_t>(thread)], own_memory());
  }

  // Each of threads() threads calls it. `parts`: receives the seconds spent; nullptr: nothing is timed.
  void run(int thread, std::array<double, pass_parts>* parts = nullptr) {
    std::span<Scratch> mine = scratches_[static_cast<std::size_t>(thread)];
    for (Scratch& scratch : mine) scratch.parts = parts;
    if (program_.parts() > 1) return run_tile(0, mine, threads_ > 1 ? &barrier_ : nullptr);
    for (std::size_t t = next_++; t < program_.tiles(); t = next_++) run_tile(t, mine, nullptr);
  }

  // prepare() and run() on a pool.
  void run_all() {
    if (threads_ == 1) {
      prepare(0);
      return run(0);
    }
    base::ThreadPool(threads_, base::WaitStyle::sleep).run([&](int thread) {
      prepare(thread);
      run(thread);
    });
  }

 private:
  using Scratch = typename TileProgram<T>::Scratch;

  [[nodiscard]] T* own_memory() const {
    const std::size_t tiles = 1 + (bra_ != nullptr ? 1U : 0U) + (program_.needs_other() ? 1U : 0U);
    return tile_memory<T>(tiles * program_.shape().numbers());
  }

  void place(std::span<Scratch> scratches, T* memory) const {
    const std::size_t numbers = program_.shape().numbers();
    for (Scratch& scratch : scratches) {
      T* next = memory;
      scratch.tile = next;
      if (bra_ != nullptr) scratch.bra = next += numbers;
      if (program_.needs_other()) scratch.other = next + numbers;
    }
  }

  void run_tile(std::size_t tile, std::span<Scratch> mine, base::Barrier* barrier) {
    for (Scratch& scratch : mine) {
      const std::size_t number = tile * program_.parts() + scratch.part;
      if (sums_ != nullptr) scratch.sums = sums_ + number * program_.probes().size();
    }
    program_.run(ket_, bra_, tile, mine, barrier);
  }

  const TileProgram<T>& program_;
  std::complex<T>* ket_;
  std::complex<T>* bra_;
  double* sums_;
  int threads_;
  std::atomic<std::size_t> next_{0};
  base::Barrier barrier_;
  std::vector<std::vector<Scratch>> scratches_;  // of each thread
};

}  // namespace onehop::quantum
