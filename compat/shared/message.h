// Messages of a mailbox, and their layout in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "onehop/channel.h"

namespace onehop::compat {

// The layout of a message: blocks of bytes at fixed offsets from a base address, which may change between uses.
struct Layout {
  struct Block {
    std::ptrdiff_t at = 0;
    std::size_t bytes = 0;
  };
  std::vector<Block> blocks;
  std::size_t bytes = 0;
  std::ptrdiff_t first = 0;   // of the blocks, the lowest offset
  std::ptrdiff_t behind = 0;  // the highest offset that no block reaches

  Layout() = default;
  explicit Layout(std::size_t length) { add(0, length); }
  // Throw BadInput if offsets or lengths leave the range of their types, or the blocks that of addresses.
  void add(std::ptrdiff_t at, std::size_t length);
  void add_strided(std::ptrdiff_t at, std::size_t length, std::size_t count, std::ptrdiff_t stride);
  void check_at(const std::byte* base) const;
};

// Reads or writes a message once from beginning to end, block by block.
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

// A message that can be sent or received repeatedly. It and its layout must not move in memory while it is under way.
struct Message {
  int peer = 0;
  std::uint32_t tag = 0;  // below first_reserved_tag
  const Layout* layout = nullptr;
  std::byte* base = nullptr;
  bool exact = false;  // whether a received message must be as long as the layout, and not just fit

  [[nodiscard]] bool active() const noexcept { return active_; }

 private:
  friend class Mailbox;
  friend class MessageList;
  friend class Outgoing;
  friend class Incoming;
  // Throws BadInput if the message is under way already, or has bytes but no memory.
  void begin();
  // The kind of stores for writing `length` bytes of it.
  [[nodiscard]] StoreKind stores(std::size_t length) const;

  Message* next_ = nullptr;  // in a list
  Cursor cursor_;
  std::size_t left_ = 0;
  bool active_ = false;
  bool begun_ = false;
};

constexpr std::uint32_t first_reserved_tag = 0xfffffff0;

// A linked list of messages in the order in which they were started. A message is in one list at most.
class MessageList {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] Message& front() const noexcept { return *first_; }
  void push(Message& message) noexcept;
  void pop() noexcept { first_ = first_->next_; }
  // Removes and returns the first message with the tag; null if there is none.
  Message* take(std::uint32_t tag) noexcept;

 private:
  Message* first_ = nullptr;
  Message* last_ = nullptr;
};

}  // namespace onehop::compat
