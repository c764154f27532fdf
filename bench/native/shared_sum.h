// A rival: the all-reduce of vLLM's CPU backend (csrc/cpu/shm.cpp), written anew. Each rank copies its array with
// non-temporal stores into a buffer that all ranks can read, in pieces of 1 MiB with two halves in turn, publishes the
// number of the piece, waits for the same number of every other rank, and adds all pieces itself, its own first.
//
// Unlike vLLM's, a rank that has waited for long yields its processor: with more ranks than processors it would
// otherwise wait for the end of a time slice.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "onehop/channel.h"
#include "onehop/group.h"
#include "src/channel/store.h"
#include "src/group/shared_memory.h"

namespace onehop::bench {

class SharedSum {
 public:
  static constexpr int most_ranks = 8;  // vLLM's limit

  // Whether these ranks can use it. The same on every rank.
  [[nodiscard]] static bool possible(const Group& group);
  // Collective.
  explicit SharedSum(const Group& group);

  // Sums over all ranks, in place. Collective.
  void run(std::span<float> array);

 private:
  struct Page;  // of one rank: its flag, and its two buffers
  void add_piece(std::span<float> piece);
  [[nodiscard]] Page& page(int rank) const noexcept;
  [[nodiscard]] std::byte* half(int rank) const noexcept;  // the buffer of the current piece

  int rank_;
  int size_;
  std::vector<onehop::detail::SharedMemory> memories_;  // of each rank
  onehop::detail::StoreFunction store_;
  std::uint64_t piece_ = 0;  // pieces so far
};

}  // namespace onehop::bench
