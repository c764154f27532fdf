// Memory behind channels and between ranks for components that prepare more channels than most programs use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "onehop/channel.h"

namespace onehop {

// Like open_channels, but slots in shared memory are reserved address space without memory. Other transports allocate
// as usual. Every rank calls ReceiverCore::back_slots() of one of them before it sends and before it lets others send.
[[nodiscard]] Channels open_channels_unbacked(const Group& group, std::span<const ChannelSpec> specs,
                                              TransportKind kind = TransportKind::automatic);

// An area of every rank's memory, which that rank writes and all ranks of the group read: a rank that sends the same
// bytes to all others stores them once, and tells the others by messages on channels. Reserved address space until the
// rank calls back().
class SharedAreas {
 public:
  // No areas.
  SharedAreas() = default;
  // Collective; all ranks of the group share memory, and the lengths may differ. Throws on every rank if an area is
  // missing on any.
  SharedAreas(const Group& group, std::int64_t bytes);

  [[nodiscard]] bool exist() const noexcept { return areas_ != nullptr; }
  // The area that this rank writes.
  [[nodiscard]] std::byte* own() const noexcept { return own_; }
  [[nodiscard]] const std::byte* of(int rank) const noexcept;
  // Allocates this rank's area and returns its size in bytes. Throws Error if memory is short.
  [[nodiscard]] std::int64_t back() const;

 private:
  struct Areas;
  std::shared_ptr<const Areas> areas_;
  std::byte* own_ = nullptr;
};

}  // namespace onehop
