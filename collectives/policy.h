// Every choice of the collective operations: the path of an operation, its chunks, its stores, the lengths of slots.
// Each number has its reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/operation.h"
#include "onehop/collectives/collectives.h"
#include "onehop/group.h"

namespace onehop::collectives::detail {

struct Exchange;

// A multiple of the block of every codec, so that chunks and pieces begin at block boundaries.
inline constexpr std::int64_t block_unit = 64;
// The longest chunk that is encoded to fit into a slot, in bytes of the array.
inline constexpr std::int64_t most_encoded_chunk = 256 << 10;
// Over MPI, messages of up to this length need neither a handshake nor, as the parts of longer ones do, a message that
// returns their slot. Between two ranks, all paths have slots of this length, so a chunk is a message.
inline constexpr std::int64_t message_bytes = 63 << 10;
// With 4, 6, 8 and 16 slots, all-reduces of 64 KiB to 16 MiB took times within the spread of a run.
inline constexpr int message_slots = 8;

// An all-reduce by host goes piece by piece: long enough that the messages of a piece cost little beside its bytes, and
// short enough that the steps inside a host overlap with the network.
inline constexpr std::int64_t by_host_piece_bytes = 2 << 20;

// In so many chunks a rank passes on its part of a block: about as many as a path has slots, so that the owner of a
// short block sends all of it without waiting.
inline constexpr std::int64_t chunks_of_part = 4;

// Over a network: how much of a contribution follows its header in one message.
[[nodiscard]] std::size_t in_message_bytes(int ranks, bool is_pair_over_mpi);

struct Choice {
  Path path = Path::phases;
  ReduceAlgorithm algorithm = ReduceAlgorithm::automatic;
};
// For an all-reduce of `bytes` bytes.
[[nodiscard]] Choice choose_path(const Exchange& exchange, const Reduction& reduction, std::int64_t bytes);
// The algorithm of the same without a codec, by the built-in tables, for predictions: hosts[r] is the host of rank r.
[[nodiscard]] ReduceAlgorithm predicted_algorithm(std::span<const int> hosts, std::int64_t bytes);
// How a broadcast of rank 0 goes there: by host or passed on, in so many chunks of a part (0: straight to all ranks).
struct PredictedBroadcast {
  std::int64_t chunks = 0;
  bool in_chain = false;
};
[[nodiscard]] PredictedBroadcast predicted_broadcast(std::span<const int> hosts, std::int64_t bytes);
// For a reduce-scatter of blocks of these lengths.
[[nodiscard]] Path choose_path(const Exchange& exchange, const Reduction& reduction,
                               std::span<const std::int64_t> elements);
// For an operation that gathers blocks of so many bytes: one behind the other, or that of the root of a broadcast.
[[nodiscard]] Path choose_path(const Exchange& exchange, std::span<const std::int64_t> bytes);
// The chunk in which ranks pass on so many bytes, and whether a broadcast goes from each rank to the next one only.
[[nodiscard]] std::int64_t forwarded_chunk(int ranks, std::int64_t bytes);
[[nodiscard]] bool goes_in_chain(int ranks, std::int64_t bytes);

// Sets chunk, stores and whether results are streamed, for `bytes` bytes to each peer; `chunk_bytes` of 0: the usual.
void set_chunk(Operation& operation, const Exchange& exchange, std::int64_t bytes, std::int64_t chunk_bytes);
// The chunk of a phase of a two-shot sum in which each rank sends `bytes` bytes to each other one; 0: the usual one.
[[nodiscard]] std::int64_t phase_chunk(const Exchange& exchange, std::int64_t bytes);
// The chunk of an all-reduce that the table names; 0: the usual one.
[[nodiscard]] std::int64_t table_chunk(const ReduceRule& rule, std::int64_t bytes_to_each);
[[nodiscard]] StoreKind stores_for(std::int64_t bytes, const Exchange& exchange);

}  // namespace onehop::collectives::detail
