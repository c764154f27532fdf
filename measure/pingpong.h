// Messages between two ranks: one back and forth, of which one way is half of the time, or several both ways at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "measure/rounds.h"
#include "measure/touch.h"
#include "onehop/channel.h"

namespace onehop::measure {

inline constexpr double one_way = 0.5;

// Sends one message from rank 0 to rank 1 and one back, `repetitions` times. An end has source(), send(), and
// receive(read), which calls read(part) for every part of the message.
template <class End>
void to_and_fro(End& end, Touch& touch, bool first, std::int64_t bytes, int repetitions) {
  const std::uint64_t lines = Touch::lines(bytes);
  const std::span<std::byte> source = end.source();
  const auto send = [&] {
    touch.dirty(source);
    touch.sent();
    end.send();
  };
  const auto receive = [&] {
    end.receive([&](std::span<const std::byte> part) { touch.read(part); });
    touch.received(lines, end.name());
  };
  for (int i = 0; i < repetitions; ++i) {
    if (first) send();
    receive();
    if (!first) send();
  }
}

template <class End>
std::function<void(int)> block_of(std::shared_ptr<End> end, bool first, std::int64_t bytes) {
  return [end = std::move(end), first, bytes, touch = std::make_shared<Touch>()](int repetitions) {
    to_and_fro(*end, *touch, first, bytes, repetitions);
  };
}

// Sends several messages in both directions at once.
template <class End>
std::function<void(int)> both_ways(std::shared_ptr<End> end, std::int64_t bytes, int messages) {
  return [end = std::move(end), bytes, messages, touch = std::make_shared<Touch>()](int repetitions) {
    const std::uint64_t lines = Touch::lines(bytes);
    for (int i = 0; i < repetitions; ++i) {
      for (int m = 0; m < messages; ++m) touch->dirty(end->source(m), lines * static_cast<std::uint64_t>(m));
      touch->sent();
      end->send();
      end->receive([&](std::span<const std::byte> part) { touch->read(part); });
      touch->received(lines * static_cast<std::uint64_t>(messages), end->name());
    }
  };
}

// A channel of onehop in each direction between two ranks. Collective.
[[nodiscard]] Channels open_both_ways(const Group& group, std::int64_t bytes, std::int64_t slot_bytes);

// Such channels as a candidate. `get`: received by Receiver::get into an array. bytes = 0 is a bare signal.
[[nodiscard]] Candidate onehop_ping_pong(const Group& group, std::int64_t bytes, bool get, Role role);

}  // namespace onehop::measure
