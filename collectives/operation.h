// A prepared collective operation: what each rank sends to each other one, as plain data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "collectives/arrays.h"
#include "collectives/forwarding.h"
#include "collectives/header.h"
#include "collectives/reduce.h"
#include "onehop/channel.h"

namespace onehop::collectives::detail {

// An operation by hosts (by_host.h). The arrays overlap only as the operation allows. Throws PeerLost with the rank's
// number in the whole group, and Timeout.
using HostSteps = std::function<void(const std::byte* source, std::byte* result)>;

// How an operation runs: in two phases; with contributions in the lines of the header; by hosts; with blocks that ranks
// pass on; or through the relay, where contributions travel each by itself, so that all are combined in the order of
// ranks, or combined with those of their host.
enum class Path : std::uint8_t { phases, in_lines, by_host, forwarded, relayed_by_rank, relayed_by_host };

// A prepared operation. Ranges have an entry for every rank.
struct Operation {
  Header header;
  std::int64_t element_bytes = 1;
  std::int64_t source_elements = 0;
  std::int64_t result_elements = 0;
  std::int64_t chunk = 0;  // elements
  StoreKind stores = StoreKind::plain;
  // Whether the arrays may be accessed by all ranks where they share memory, and the choices then, in place or not.
  bool may_share = false;
  std::array<int, 2> shared_choices{-1, -1};
  int choice = -1;       // index in Exchange::choices, which then gives the store kind; -1: none
  bool streams = false;  // the result is stored non-temporally, because the caches cannot hold it
  bool encoded = false;  // both phases encode the data that they send
  bool adds = false;     // the operation is a sum or mean of float32
  Path path = Path::phases;
  HostSteps by_host;                             // of Path::by_host
  std::shared_ptr<const Forwarding> forwarding;  // of Path::forwarded
  int lines = 0;                                 // cache lines of the header of Path::in_lines
  // Whether source and result may share memory. Element `in_place_at_source` of the source is then element
  // `in_place_at_result` of the result.
  bool in_place = false;
  std::int64_t in_place_at_source = 0;
  std::int64_t in_place_at_result = 0;

  // Reduce phase: the range of this rank's source that goes to each rank. This rank reduces its own range, and stores
  // it from `reduced_at` on in the result.
  bool reduces = false;
  ReduceFunction reduce = nullptr;
  ReduceFunction reduce_wide = nullptr;  // of decoded numbers
  std::vector<Range> contribute;
  std::int64_t reduced_at = 0;

  // Allgather phase: the range of this rank's result (`gathers_result`) or source that goes to each rank, and the range
  // of the result in which the data of each rank is stored. This rank copies its own ranges.
  bool gathers = false;
  bool gathers_result = false;
  // Whether a rank sends all others the same ranges, stores them once in its shared area, and the others read there.
  bool shares = false;
  std::vector<Range> gather_send;
  std::vector<Range> gather_receive;
  // Whether the header does not determine the lengths of the blocks, so that ranks compare them (BlockLengths).
  bool compares_lengths = false;
  std::uint64_t lengths_sum = 0;

  // Whether the operation may need the memory of slots on some rank. The same on every rank.
  bool uses_slots = false;
  // Number of chunks of the longest range of each phase.
  std::int64_t reduce_chunks = 0;
  std::int64_t gather_chunks = 0;

  [[nodiscard]] bool is_relayed() const noexcept { return path >= Path::relayed_by_rank; }
  [[nodiscard]] std::int64_t source_bytes() const noexcept { return source_elements * element_bytes; }
  [[nodiscard]] std::int64_t result_bytes() const noexcept { return result_elements * element_bytes; }
  [[nodiscard]] std::int64_t chunks(const Range& range) const noexcept {
    return (range.elements() + chunk - 1) / chunk;
  }
  [[nodiscard]] Range part(const Range& range, std::int64_t number) const noexcept {
    const std::int64_t first = range.first + number * chunk;
    return {first, first + chunk < range.last ? first + chunk : range.last};
  }
};

}  // namespace onehop::collectives::detail
