// Collective operations over a mailbox.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compat/shared/mailbox.h"

namespace onehop::compat {

// Collective operations over a subset of a mailbox's ranks; this rank is number `me` among them. Every operation sends
// one message from each rank to each other one. Results are combined in rank order and identical on all ranks. A rank
// that contributes another number of bytes than this one is an error: Mismatch.
class Collectives {
 public:
  // No other messages of the mailbox may use the tag.
  Collectives(Mailbox& mailbox, std::vector<int> ranks, int me, std::uint32_t tag);
  // Of all ranks.
  Collectives(Mailbox& mailbox, std::uint32_t tag) : Collectives(mailbox, all(mailbox.size()), mailbox.rank(), tag) {}
  // The numbers from 0 to `ranks` - 1.
  static std::vector<int> all(int ranks);

  [[nodiscard]] int me() const noexcept { return me_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] const std::vector<int>& ranks() const noexcept { return ranks_; }

  // Returns the contributions of all ranks in rank order, `mine.size()` bytes each. Valid until the next operation.
  std::span<const std::byte> gather(std::span<const std::byte> mine);
  // Sends the i-th of size() equal parts to rank i. Returns the parts that the ranks sent to this one, in rank order.
  std::span<const std::byte> exchange(std::span<const std::byte> parts);
  void broadcast(std::span<std::byte> bytes, int root);
  void barrier() { gather({}); }

 private:
  std::span<const std::byte> all_to_all(const std::byte* first, std::size_t stride, std::size_t bytes);
  void wait(std::vector<Message>& messages);

  Mailbox& mailbox_;
  std::vector<int> ranks_;
  int me_;
  Layout layout_;
  std::vector<Message> out_;
  std::vector<Message> in_;
  std::vector<std::byte> result_;
};

}  // namespace onehop::compat
