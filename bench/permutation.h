// `onehop bench permutation`: bits of the rank's number change places with local bits of the index of a distributed state.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "bench/rounds.h"
#include "onehop/channel.h"
#include "onehop/patterns.h"

namespace onehop::bench {

struct PermutationOptions {
  Effort effort;
  bool peers = true;
  TransportKind transport = TransportKind::automatic;
  std::vector<std::pair<int, int>> pairs;  // (local bit, bit of the rank), disjoint
  std::vector<Codec> codecs{};             // also with these, of complex doubles
};

// The same permutation by other means, in place in this rank's part of the state.
class PermutationPeer {
 public:
  virtual ~PermutationPeer() = default;
  virtual void run() = 0;  // collective
};

// One pair after the other, as simulators do it: half of the rank's elements are packed into a buffer as large as the rank's
// part, exchanged with one other rank by MPI_Sendrecv, and unpacked. Collective; null where there is no MPI to compare with.
[[nodiscard]] std::unique_ptr<PermutationPeer> mpi_swap_peer(const Group& group, std::span<std::byte> state,
                                                             const PermuteBitsSpec& spec,
                                                             const std::vector<std::pair<int, int>>& pairs);

// Collective over the group, whose ranks must share memory. All work on the same state, which takes 2^spec.local_bits elements on
// every rank; MPI's buffer is as large again. Elements are written before each run and checked after it. Samples are µs. The speed
// of light is the time to read and write once every cache line that holds an element that moves.
[[nodiscard]] std::vector<Samples> permutation(const Group& group, const PermuteBitsSpec& spec,
                                               const PermutationOptions& options);

}  // namespace onehop::bench
