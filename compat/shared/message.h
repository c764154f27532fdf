// Messages of a post, and where they lie in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "onehop/channel.h"

namespace onehop::door {

// Where a message lies: blocks of bytes at distances from a base that may change.
struct Layout {
  struct Block {
    std::ptrdiff_t at = 0;
    std::size_t bytes = 0;
  };
  std::vector<Block> blocks;
  std::size_t bytes = 0;

  Layout() = default;
  explicit Layout(std::size_t length) { add(0, length); }
  void add(std::ptrdiff_t at, std::size_t length);
};

// Goes through a message once, block by block.
class Cursor {
 public:
  Cursor() = default;
  Cursor(const Layout& layout, std::byte* base) : layout_(&layout), base_(base) {}
  void read(std::span<std::byte> to, StoreKind stores);
  void write(std::span<const std::byte> from, StoreKind stores);

 private:
  template <class Visit>
  void walk(std::size_t bytes, Visit visit);

  const Layout* layout_ = nullptr;
  std::byte* base_ = nullptr;
  std::size_t block_ = 0;
  std::size_t within_ = 0;
};

// One message that is sent or received, as often as one likes. It stays where it is, with its layout, while it is under way.
struct Message {
  int peer = 0;
  std::uint32_t tag = 0;  // below first_reserved_tag
  const Layout* layout = nullptr;
  std::byte* base = nullptr;

  [[nodiscard]] bool active() const noexcept { return active_; }

 private:
  friend class Post;
  friend class Queue;
  friend class Outgoing;
  friend class Incoming;
  // Throws BadInput if it is under way.
  void begin();
  // The stores for this many bytes of it.
  [[nodiscard]] StoreKind stores(std::size_t length) const;

  Message* next_ = nullptr;  // in a queue
  Cursor cursor_;
  std::size_t left_ = 0;
  bool active_ = false;
  bool begun_ = false;
};

constexpr std::uint32_t first_reserved_tag = 0xfffffff0;

// Messages in the order in which they were started. They are in one queue at most.
class Queue {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] Message& front() const noexcept { return *first_; }
  void push(Message& message) noexcept;
  void pop() noexcept { first_ = first_->next_; }
  // The first message of the tag, which leaves the queue; null if there is none.
  Message* take(std::uint32_t tag) noexcept;

 private:
  Message* first_ = nullptr;
  Message* last_ = nullptr;
};

}  // namespace onehop::door
