// `Collectives` holds channels between all ranks of a group. `Collective` is one prepared operation on them, for
// example an all-reduce of a given length, type and operator. Preparing it needs no communication; it can then run any
// number of times on any arrays of that shape.
//
// Reductions combine the elements of all ranks in the order of ranks. The result has the same bits on every rank, for
// every algorithm, chunk size and timing. The exception is ReduceAlgorithm::by_host, which combines the ranks of each
// host first and then the hosts; "automatic" may choose it for all-reduces of 1 KiB or more between several hosts, one
// of which has two ranks or more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "onehop/channel.h"
#include "onehop/codec.h"
#include "onehop/collectives/reduce_table.h"
#include "onehop/group.h"
#include "onehop/patterns.h"
#include "onehop/schedule.h"

namespace onehop::collectives {

enum class ReduceOp : std::uint8_t { sum, mean, min, max, prod };

[[nodiscard]] std::string_view to_string(ReduceOp op);
[[nodiscard]] ReduceOp reduce_op_from_string(std::string_view name);  // throws BadInput, with the known ones

namespace detail {
struct Exchange;
struct Operation;
}  // namespace detail

// Parameters of a reduction.
struct Reduction {
  std::int64_t elements = 0;  // all-reduce: length of the array; reduce-scatter: length of the block that a rank gets
  ElementType type = ElementType::float32;
  ReduceOp op = ReduceOp::sum;  // no mean of integers
  Codec codec = Codec::raw;
  ReduceAlgorithm algorithm = ReduceAlgorithm::automatic;
  std::int64_t chunk_bytes = 0;  // size of the pieces in which the array travels; 0: onehop chooses
  // Extents of the array, or of several arrays with -1 between them. If they differ between ranks, the operation throws
  // Mismatch. Empty means one dimension.
  std::vector<std::int64_t> shape{};
};

// Optional type and shape of data that an operation only moves. If they differ between ranks, the operation throws
// Mismatch.
struct Content {
  ElementType type = ElementType::bytes;
  std::vector<std::int64_t> shape{};  // as in Reduction
};

// One of several arrays that an operation treats as one contiguous array.
struct Part {
  const std::byte* source = nullptr;
  std::byte* result = nullptr;
  std::int64_t elements = 0;
};

// A prepared operation. Only one thread at a time may use it. Only one operation on the same `Collectives` runs at a
// time, and every rank runs them in the same order. Between hosts, every rank also finishes operations on several
// `Collectives` in the same order.
class Collective {
 public:
  // Lengths in bytes of the arrays that start() takes.
  [[nodiscard]] std::int64_t source_bytes() const noexcept;
  [[nodiscard]] std::int64_t result_bytes() const noexcept;

  // Starts the operation without waiting, except after a Mismatch, when it waits for the other ranks. Until finish()
  // returns, do not write `source` and do not access `result`. They may share memory as the operation describes, and
  // must not overlap otherwise. Throws BadInput for wrong lengths, an overlap, or if another operation on these
  // Collectives is running.
  void start(std::span<const std::byte> source, std::span<std::byte> result);
  // For all-reduce: several arrays whose total length is the prepared one.
  void start(std::span<const Part> parts);

  // Completes the operation. Throws Mismatch on every rank if two ranks run different operations; the message names
  // both ranks and their operations. No data was combined then, and another operation may be started. Throws PeerLost
  // and Timeout, after which the Collectives cannot be used again.
  void finish();

  void run(std::span<const std::byte> source, std::span<std::byte> result) {
    start(source, result);
    finish();
  }

  // The algorithm and the chunk size in bytes that onehop uses, where the Reduction has "automatic" or 0.
  [[nodiscard]] ReduceAlgorithm algorithm() const noexcept;
  [[nodiscard]] std::int64_t chunk_bytes() const noexcept;

 private:
  friend class Collectives;
  Collective(std::shared_ptr<detail::Exchange> exchange, std::shared_ptr<detail::Operation> operation);
  std::shared_ptr<detail::Exchange> exchange_;
  std::shared_ptr<detail::Operation> operation_;
};

struct CollectivesOptions {
  TransportKind transport = TransportKind::automatic;
  int slots = 0;  // per path, 2 at least; 0: onehop chooses
  // 0: onehop chooses 256 KiB or less, so that staging memory stays below 6 MiB per rank (from 1536 ranks on: 4 KiB per
  // peer). Staging memory is 2 (ranks - 1) slots * slot_bytes per rank. It is allocated for the first operation that
  // does not fit in its header.
  std::int64_t slot_bytes = 0;
};

// Operations run, and bytes of payload moved, without headers, since the Collectives were made.
struct CollectivesCounters {
  std::int64_t operations = 0;
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
};

class Collectives {
 public:
  // Collective over the group.
  explicit Collectives(const Group& group, const CollectivesOptions& options = {});

  [[nodiscard]] const Group& group() const noexcept;
  [[nodiscard]] CollectivesCounters counters() const noexcept;
  // Bytes of shared memory that currently back the channels to this rank.
  [[nodiscard]] std::int64_t staging_bytes() const noexcept;
  // The table that resolves "automatic". It is rank 0's table, so that all ranks make the same choice.
  [[nodiscard]] const ReduceTable& table() const noexcept;

  // All of these throw BadInput for invalid numbers. None but barrier() communicates.

  // Source and result have `elements` elements on every rank. They may be the same memory.
  [[nodiscard]] Collective allreduce(const Reduction& reduction) const;
  // The source has one block of `elements` elements per rank. The result is the reduced block of this rank; it may be
  // that block of the source. Elements are combined in the order of ranks if reduction.algorithm is two_shot; otherwise
  // long blocks are combined inside each host first, where several hosts take part, one of them with two ranks or more.
  [[nodiscard]] Collective reduce_scatter(const Reduction& reduction) const;
  // The same with blocks of different lengths, elements[r] on rank r; reduction.elements does not count.
  [[nodiscard]] Collective reduce_scatter(const Reduction& reduction, std::span<const std::int64_t> elements) const;
  // The source is a block of `bytes` bytes, the result has the blocks of all ranks. The source may be this rank's block
  // of the result.
  [[nodiscard]] Collective allgather(std::int64_t bytes, const Content& content = {}) const;
  // The same with blocks of different lengths, bytes[r] on rank r.
  [[nodiscard]] Collective allgather(std::span<const std::int64_t> bytes, const Content& content = {}) const;
  // Copies `bytes` bytes from the source of rank `root` to the result of every rank. Source and result may be the same
  // memory. Other ranks do not read their source.
  [[nodiscard]] Collective broadcast(std::int64_t bytes, int root, const Content& content = {}) const;
  // Sends block r of the source, of bytes_to[r] bytes, to rank r, and receives block r of the result, of bytes_from[r]
  // bytes, from rank r. Source and result must be disjoint. Throws Mismatch on every rank if bytes_to of one rank and
  // bytes_from of another differ.
  [[nodiscard]] Collective all_to_all(std::span<const std::int64_t> bytes_to, std::span<const std::int64_t> bytes_from,
                                      const Content& content = {}) const;
  // Waits until all ranks have called it.
  void barrier() const;

 private:
  std::shared_ptr<detail::Exchange> exchange_;
};

}  // namespace onehop::collectives
