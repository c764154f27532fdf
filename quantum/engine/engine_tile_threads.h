// Runs a tile program on several threads, which take whole tiles, or share the only one.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <complex>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "quantum/engine/engine_run.h"
#include "quantum/engine/engine_tile.h"
#include "quantum/engine/tile_memory.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {

template <typename T>
class TileThreads {
 public:
  // The program must outlive this object.
  TileThreads(const TileProgram<T>& program, const EngineStates<T>& states, int threads)
      : program_(program),
        states_(states),
        sums_(states.bra.empty() ? 0 : program.tiles() * program.parts() * program.probes().size()),
        rounding_(states.encoded == nullptr ? 0 : program.tiles() * program.parts()),
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
        if (states.encoded != nullptr) rows_.push_back(std::make_unique<EncodedRows>(*states.encoded));
        if (states.encoded != nullptr) scratches_[thread].back().encoded = rows_.back().get();
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

  // Adds the products of both states to the derivatives, or the sums of encoded amplitudes, after all threads have run:
  // in the order of parts, so that the result does not depend on the threads.
  void finish() const {
    RoundingSums rounded;
    for (const RoundingSums& part : rounding_) rounded.add(part);
    if (states_.encoded != nullptr) states_.encoded->finish_pass(rounded);
    const std::size_t probes = program_.probes().size();
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      states_.derivatives[static_cast<std::size_t>(program_.probes()[i % probes])] +=
          program_.probe_scales()[i % probes] * sums_[i];
    }
  }

  // prepare() and run() on a pool, then finish().
  void run_all() {
    const auto body = [&](int thread) {
      prepare(thread);
      run(thread);
    };
    if (threads_ == 1) {
      body(0);
    } else {
      base::ThreadPool(threads_, base::WaitStyle::sleep).run(body);
    }
    finish();
  }

 private:
  using Scratch = typename TileProgram<T>::Scratch;

  [[nodiscard]] T* own_memory() const {
    const std::size_t tiles = 1 + (states_.bra.empty() ? 0U : 1U) + (program_.needs_other() ? 1U : 0U);
    return tile_memory<T>(tiles * program_.shape().numbers());
  }

  void place(std::span<Scratch> scratches, T* memory) const {
    const std::size_t numbers = program_.shape().numbers();
    for (Scratch& scratch : scratches) {
      T* next = memory;
      scratch.tile = next;
      if (!states_.bra.empty()) scratch.bra = next += numbers;
      if (program_.needs_other()) scratch.other = next + numbers;
    }
  }

  void run_tile(std::size_t tile, std::span<Scratch> mine, base::Barrier* barrier) {
    for (Scratch& scratch : mine) {
      const std::size_t number = tile * program_.parts() + scratch.part;
      if (!sums_.empty()) scratch.sums = sums_.data() + number * program_.probes().size();
    }
    program_.run(states_.ket.data(), states_.bra.data(), tile, mine, barrier);
    for (const Scratch& scratch : mine) {
      if (scratch.encoded != nullptr) {
        rounding_[tile * program_.parts() + scratch.part] = scratch.encoded->take_sums();
      }
    }
  }

  const TileProgram<T>& program_;
  EngineStates<T> states_;
  std::vector<double> sums_;                        // of each probe, for each part of each tile
  std::vector<RoundingSums> rounding_;              // of encoded amplitudes, for each part of each tile
  std::vector<std::unique_ptr<EncodedRows>> rows_;  // of each scratch, with encoded amplitudes
  int threads_;
  std::atomic<std::size_t> next_{0};
  base::Barrier barrier_;
  std::vector<std::vector<Scratch>> scratches_;  // of each thread
};

}  // namespace onehop::quantum
