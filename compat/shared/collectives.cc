#include "compat/shared/collectives.h"

#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>

#include "compat/shared/memory.h"

namespace onehop::compat {
namespace {

std::size_t index(int value) { return static_cast<std::size_t>(value); }

}  // namespace

Collectives::Collectives(Mailbox& mailbox, std::vector<int> ranks, int me, std::uint32_t tag)
    : mailbox_(mailbox), ranks_(std::move(ranks)), me_(me), out_(ranks_.size()), in_(ranks_.size()) {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    out_[i].peer = in_[i].peer = ranks_[i];
    out_[i].tag = in_[i].tag = tag;
    out_[i].layout = in_[i].layout = &layout_;
    in_[i].exact = true;
  }
}

std::vector<int> Collectives::all(int ranks) {
  std::vector<int> numbers(index(ranks));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

void Collectives::wait(std::vector<Message>& messages) {
  mailbox_.wait([&messages, next = std::size_t{0}]() mutable {
    while (next < messages.size() && !messages[next].active()) ++next;
    return next < messages.size() ? messages[next].peer : -1;
  });
}

std::span<const std::byte> Collectives::all_to_all(const std::byte* first, std::size_t stride, std::size_t bytes) {
  std::size_t everything = 0;
  if (__builtin_mul_overflow(bytes, ranks_.size(), &everything)) everything = PTRDIFF_MAX;
  if (everything > result_.capacity()) check_size(everything);
  if (layout_.bytes != bytes) layout_ = Layout(bytes);
  result_.resize(everything);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const std::byte* const from = first + stride * i;
    std::byte* const to = result_.data() + bytes * i;
    if (static_cast<int>(i) == me_) {
      if (bytes > 0) std::memcpy(to, from, bytes);
      continue;
    }
    in_[i].base = to;
    mailbox_.receive(in_[i]);
    out_[i].base = const_cast<std::byte*>(from);  // only read
    mailbox_.send(out_[i]);
  }
  wait(in_);
  wait(out_);
  return result_;
}

std::span<const std::byte> Collectives::gather(std::span<const std::byte> mine) {
  return all_to_all(mine.data(), 0, mine.size());
}

std::span<const std::byte> Collectives::exchange(std::span<const std::byte> parts) {
  const std::size_t bytes = parts.size() / ranks_.size();
  return all_to_all(parts.data(), bytes, bytes);
}

void Collectives::broadcast(std::span<std::byte> bytes, int root) {
  if (layout_.bytes != bytes.size()) layout_ = Layout(bytes.size());
  if (me_ != root) {
    Message& message = in_[index(root)];
    message.base = bytes.data();
    mailbox_.receive(message);
    mailbox_.wait(message);
    return;
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (static_cast<int>(i) == me_) continue;
    out_[i].base = bytes.data();
    mailbox_.send(out_[i]);
  }
  wait(out_);
}

}  // namespace onehop::compat
