// Channels whose slots get memory only on demand, for components that prepare more channels than most programs use.
#pragma once

#include <cstdint>
#include <span>

#include "onehop/channel.h"

namespace onehop {

// Like open_channels, but slots in shared memory are reserved address space without memory. Other transports allocate
// as usual.
[[nodiscard]] Channels open_channels_unbacked(const Group& group, std::span<const ChannelSpec> specs,
                                              TransportKind kind = TransportKind::automatic);

// Allocates the slots of all channels that this rank opened in the same call as this one, and returns their size in
// bytes. Every rank calls it before it sends and before it lets others send. Throws Error if memory is short.
std::int64_t back_slots(const Receiver& one);

}  // namespace onehop
