// Collective operations of a post.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compat/shared/mailbox.h"

namespace onehop::door {

// Collective operations over some ranks of a post, of which this rank is number `me`. Every operation is one message from
// everybody to everybody; results are made in the order of ranks and are the same on all.
class Circle {
 public:
  // The tag is of nobody else.
  Circle(Post& post, std::vector<int> ranks, int me, std::uint32_t tag);

  [[nodiscard]] int me() const noexcept { return me_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] const std::vector<int>& ranks() const noexcept { return ranks_; }

  // What everybody gave, `mine.size()` bytes each, in the order of ranks; valid until the next operation.
  std::span<const std::byte> gather(std::span<const std::byte> mine);
  // The i-th part of `parts` goes to rank i, whose part for this rank comes to the same place in the result.
  std::span<const std::byte> exchange(std::span<const std::byte> parts);
  void broadcast(std::span<std::byte> bytes, int root);
  void barrier() { gather({}); }

 private:
  std::span<const std::byte> all_to_all(const std::byte* first, std::size_t stride, std::size_t bytes);
  void wait(std::vector<Message>& messages);

  Post& post_;
  std::vector<int> ranks_;
  int me_;
  Layout layout_;
  std::vector<Message> out_;
  std::vector<Message> in_;
  std::vector<std::byte> result_;
};

}  // namespace onehop::door
