// `Collectives` are prepared paths between all ranks of a group, and `Collective` is one operation on them (an all-reduce of a
// certain length, type, operation): made without communication, and run as often as you like on any arrays of that shape.
//
// Reductions combine what the ranks have in the order of ranks, element by element: the result has the same bits on every
// rank, whatever the algorithm, the number of pieces it travels in, and the timing.
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

// What of a group's ranks is to be combined.
struct Reduction {
  std::int64_t elements = 0;  // of an all-reduce: of the array; of a reduce-scatter: of the block that a rank gets
  ElementType type = ElementType::float32;
  ReduceOp op = ReduceOp::sum;  // no mean of integers
  Codec codec = Codec::raw;
  ReduceAlgorithm algorithm = ReduceAlgorithm::automatic;
  std::int64_t chunk_bytes = 0;  // of the pieces in which it travels; 0: onehop chooses
  // Extents of the array, or of several with -1 between them. Other ones on another rank are a Mismatch; empty is as if there
  // were one dimension.
  std::vector<std::int64_t> shape{};
};

// What bytes are that are only moved, for those who want it compared: another type or shape on another rank is a Mismatch.
struct Content {
  ElementType type = ElementType::bytes;
  std::vector<std::int64_t> shape{};  // as of a Reduction
};

// One of several arrays that an operation treats as if they lay behind each other.
struct Part {
  const std::byte* source = nullptr;
  std::byte* result = nullptr;
  std::int64_t elements = 0;
};

// A prepared operation. Not for two threads at once. Of all operations on the same `Collectives` one runs at a time; every rank
// runs them in the same order.
class Collective {
 public:
  // Lengths in bytes of what start() takes.
  [[nodiscard]] std::int64_t source_bytes() const noexcept;
  [[nodiscard]] std::int64_t result_bytes() const noexcept;

  // Begins without waiting; only after a Mismatch it waits until the others are there. `source` must not be written and `result`
  // not be touched until finish() returns. They may be the same memory (see the operation for which part), else they must not
  // overlap. Throws BadInput for other lengths, an overlap, or if another operation on these Collectives runs.
  void start(std::span<const std::byte> source, std::span<std::byte> result);
  // For all-reduce: several arrays, together as long as was prepared.
  void start(std::span<const Part> parts);

  // Completes it. Throws Mismatch, on every rank, if the ranks do not run the same operation (naming both and what they run):
  // then nothing was combined, and another operation may be started. Throws PeerLost, Timeout; after either the Collectives
  // cannot be used again.
  void finish();

  void run(std::span<const std::byte> source, std::span<std::byte> result) {
    start(source, result);
    finish();
  }

  // What was chosen for "automatic".
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
  // 0: onehop chooses 256 KiB or less, so that staging stays below 6 MiB a rank (from 1536 ranks on: 4 KiB for each peer). Staging
  // is 2 (ranks - 1) slots * slot_bytes for each rank from the first operation on that does not travel in its announcement.
  std::int64_t slot_bytes = 0;
};

// What was moved since the Collectives were made: the bytes of payload, without announcements.
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
  // Memory shared with the other ranks of this machine that stands behind the paths to this rank at the moment.
  [[nodiscard]] std::int64_t staging_bytes() const noexcept;
  // What "automatic" goes by: that of rank 0, so that all ranks choose the same.
  [[nodiscard]] const ReduceTable& table() const noexcept;

  // All throw BadInput for numbers that cannot be. None of them communicates.

  // Source and result have `elements` elements on every rank; they may be the same.
  [[nodiscard]] Collective allreduce(const Reduction& reduction) const;
  // The source has a block of `elements` elements for every rank, the result is the own block; it may be the own block of the
  // source.
  [[nodiscard]] Collective reduce_scatter(const Reduction& reduction) const;
  // The source is a block of `bytes` bytes, the result everybody's blocks; the source may be the own block of the result.
  [[nodiscard]] Collective allgather(std::int64_t bytes, const Content& content = {}) const;
  // The same with blocks of different lengths, bytes[r] on rank r.
  [[nodiscard]] Collective allgather(std::span<const std::int64_t> bytes, const Content& content = {}) const;
  // `bytes` bytes of rank `root`. There the result is a copy of the source, and may be the same; elsewhere the source is
  // not looked at, and may be the same.
  [[nodiscard]] Collective broadcast(std::int64_t bytes, int root, const Content& content = {}) const;
  // Block r of the source goes to rank r, where it becomes this rank's block of the result; blocks have bytes_to[r] and
  // bytes_from[r] bytes. Both must be disjoint.
  [[nodiscard]] Collective all_to_all(std::span<const std::int64_t> bytes_to, std::span<const std::int64_t> bytes_from,
                                      const Content& content = {}) const;
  // Nobody leaves before everybody has come.
  void barrier() const;

 private:
  std::shared_ptr<detail::Exchange> exchange_;
};

}  // namespace onehop::collectives
