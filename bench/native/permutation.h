// `onehop bench permutation`: swaps rank bits with local bits in the index of a distributed state.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "bench/native/measure.h"
#include "onehop/channel.h"
#include "onehop/patterns.h"

namespace onehop::bench {

struct PermutationOptions {
  Effort effort;
  bool peers = true;
  TransportKind transport = TransportKind::automatic;
  std::vector<std::pair<int, int>> pairs;  // of bits, disjoint; usually (local bit, bit of the rank)
  std::vector<Codec> codecs{};             // additional candidates: these codecs on complex doubles
};

// The same permutation by other means, in place in this rank's part of the state.
class PermutationPeer {
 public:
  virtual ~PermutationPeer() = default;
  virtual void run() = 0;  // collective
};

// Swaps one pair after the other, as simulators do: packs half of the rank's elements into a buffer as large as the
// rank's part, exchanges it with another rank by MPI_Sendrecv, and unpacks. Collective; null if there is no MPI.
[[nodiscard]] std::unique_ptr<PermutationPeer> mpi_swap_peer(const Group& group, std::span<std::byte> state,
                                                             const PermuteBitsSpec& spec,
                                                             const std::vector<std::pair<int, int>>& pairs);

// Samples are µs. All candidates use the same state of 2^spec.local_bits elements per rank; MPI's buffer is as large.
// Elements are written before each run and checked after it. The speed of light is the time to read and write once
// every cache line with an element that moves. Collective over the group, whose ranks must share memory.
[[nodiscard]] std::vector<Samples> permutation(const Group& group, const PermuteBitsSpec& spec,
                                               const PermutationOptions& options);

}  // namespace onehop::bench
