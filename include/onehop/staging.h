// Channels whose slots get memory only when they are needed: for parts that prepare more paths than many a program uses.
#pragma once

#include <cstdint>
#include <span>

#include "onehop/channel.h"

namespace onehop {

// As open_channels. On this machine the slots have an address but no memory behind them; over a network it is the same.
[[nodiscard]] Channels open_channels_unbacked(const Group& group, std::span<const ChannelSpec> specs,
                                              TransportKind kind = TransportKind::automatic);

// Gets memory for the slots of all channels that were opened on this rank together with this one; returns how many bytes.
// Every rank does that for itself, before it sends and before it lets others send. Throws Error where there is not enough.
std::int64_t back_slots(const Receiver& one);

}  // namespace onehop
