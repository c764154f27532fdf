#include "compat/shared/message.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "compat/shared/memory.h"
#include "onehop/error.h"
#include "onehop/tuning.h"
#include "src/base/memory_left.h"
#include "src/channel/store.h"

namespace onehop::compat {
namespace {

constexpr std::size_t memcpy_below = 256;  // bytes; shorter pieces gain nothing from the tuned kind of stores

// Copies pieces with one kind of stores; finish() must follow the last piece.
class Copier {
 public:
  explicit Copier(StoreKind stores) : stores_(stores) {}
  void copy(std::byte* to, const std::byte* from, std::size_t length) {
    if (stores_ == StoreKind::plain || length < memcpy_below) {
      if (length == sizeof(std::uint64_t)) {
        std::memcpy(to, from, sizeof(std::uint64_t));  // as one instruction
      } else {
        std::memcpy(to, from, length);
      }
    } else {
      store_piece(stores_, to, {from, length});
      unfinished_ = true;
    }
  }
  void finish() const {
    if (unfinished_) finish_pieces(stores_);
  }

 private:
  StoreKind stores_;
  bool unfinished_ = false;
};

}  // namespace

void Layout::add(std::ptrdiff_t at, std::size_t length) {
  if (length == 0) return;
  std::ptrdiff_t end = 0;
  std::size_t sum = 0;
  if (__builtin_add_overflow(at, length, &end) || __builtin_add_overflow(bytes, length, &sum) || sum > PTRDIFF_MAX) {
    throw BadInput("expected a message of fewer bytes than there are addresses, found a block of " +
                   std::to_string(length) + " bytes at offset " + std::to_string(at) + " behind " +
                   std::to_string(bytes) + " others");
  }
  first = blocks.empty() ? at : std::min(first, at);
  behind = blocks.empty() ? end : std::max(behind, end);
  bytes = sum;
  if (!blocks.empty() && blocks.back().at + static_cast<std::ptrdiff_t>(blocks.back().bytes) == at) {
    blocks.back().bytes += length;
  } else {
    blocks.push_back({at, length});
  }
}

void Layout::add_strided(std::ptrdiff_t at, std::size_t length, std::size_t count, std::ptrdiff_t stride) {
  std::ptrdiff_t last = 0;
  if (length > 0 && count > 0 &&
      (__builtin_mul_overflow(count - 1, stride, &last) || __builtin_add_overflow(at, last, &last))) {
    throw BadInput("expected offsets that addresses can have, found " + std::to_string(count) + " blocks " +
                   std::to_string(stride) + " bytes apart");
  }
  if (std::cmp_equal(stride, length)) {  // one block
    std::size_t whole = 0;
    return add(at, __builtin_mul_overflow(length, count, &whole) ? SIZE_MAX : whole);
  }
  constexpr std::size_t many = 1 << 16;
  if (length > 0 && count > many) {
    check_size(count * sizeof(Block));
    const std::int64_t left = detail::available_memory();
    if (std::cmp_greater(count * sizeof(Block), left)) {
      throw BadInput("expected blocks whose list fits into the " + std::to_string(left) +
                     " bytes of memory that are left, found " + std::to_string(count) + " blocks");
    }
    blocks.reserve(blocks.size() + count);
  }
  for (std::size_t i = 0; length > 0 && i < count; ++i) add(at + static_cast<std::ptrdiff_t>(i) * stride, length);
}

void Layout::check_at(const std::byte* base) const {
  if (bytes == 0) return;
  check_memory(base, std::max(bytes, static_cast<std::size_t>(std::max<std::ptrdiff_t>(behind, 0))));
  if (first < 0 && reinterpret_cast<std::uintptr_t>(base) < -static_cast<std::uintptr_t>(first)) {
    throw BadInput("expected blocks at addresses above 0, found one at offset " + std::to_string(first));
  }
  if (first < 0) check_size(-static_cast<std::size_t>(first));
}

template <class Visit>
void Cursor::walk(std::size_t bytes, Visit visit) {
  while (bytes > 0) {
    const Layout::Block& block = layout_->blocks[block_];
    const std::size_t length = std::min(bytes, block.bytes - within_);
    visit(base_ + block.at + within_, length);
    bytes -= length;
    within_ += length;
    if (within_ == block.bytes) {
      ++block_;
      within_ = 0;
    }
  }
}

void Cursor::read(std::span<std::byte> to, StoreKind stores) {
  Copier copier(stores);
  walk(to.size(), [&, at = to.data()](const std::byte* from, std::size_t length) mutable {
    copier.copy(at, from, length);
    at += length;
  });
  copier.finish();
}

void Cursor::write(std::span<const std::byte> from, StoreKind stores) {
  Copier copier(stores);
  walk(from.size(), [&, at = from.data()](std::byte* to, std::size_t length) mutable {
    copier.copy(to, at, length);
    at += length;
  });
  copier.finish();
}

void Message::begin() {
  if (active_) throw BadInput("the message is under way already; wait for it before starting it again");
  if (base == nullptr && layout->bytes > 0) check_memory(base, layout->bytes);
  active_ = true;
  begun_ = false;
  left_ = layout->bytes;
  cursor_ = Cursor(*layout, base);
}

StoreKind Message::stores(std::size_t length) const {
  return length < memcpy_below ? StoreKind::plain : tuning().rule(static_cast<std::int64_t>(layout->bytes)).stores;
}

void MessageList::push(Message& message) noexcept {
  message.next_ = nullptr;
  (first_ == nullptr ? first_ : last_->next_) = &message;
  last_ = &message;
}

Message* MessageList::take(std::uint32_t tag) noexcept {
  Message* before = nullptr;
  for (Message* each = first_; each != nullptr; before = each, each = each->next_) {
    if (each->tag != tag) continue;
    (before == nullptr ? first_ : before->next_) = each->next_;
    if (last_ == each) last_ = before;
    return each;
  }
  return nullptr;
}

}  // namespace onehop::compat
