// Uses messages as a program does: writes the source before sending and reads the received message. Without both,
// copies would be served by the wrong cache and look several times faster than they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "onehop/error.h"

namespace onehop::measure {

// Writes one word in each line of a message and checks one word in each line of a received one. Each candidate has its
// own object, and both ranks count messages alike.
class Touch {
 public:
  // Writes the first word of every line of the next message. `first_line` is the number of lines in its earlier parts.
  void dirty(std::span<std::byte> source, std::uint64_t first_line = 0) noexcept {
    const std::size_t n = source.size();
    std::uint64_t line = sent_ + 1 + first_line;
    for (std::size_t at = 0; at + word <= n; at += line_bytes, ++line) {
      *reinterpret_cast<volatile std::uint64_t*>(source.data() + at) = line;
    }
  }
  void sent() noexcept { ++sent_; }

  // Reads a part of the received message.
  void read(std::span<const std::byte> part) noexcept {
    const std::size_t n = part.size();
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at + word <= n; at += line_bytes) {
      std::uint64_t value;
      std::memcpy(&value, part.data() + at, word);
      sum += value;
    }
    sum_ += sum;
  }
  // Checks a message of `lines` lines after all its parts have been read. Throws Error if the data is wrong.
  void received(std::uint64_t lines, std::string_view candidate) {
    ++received_;
    const std::uint64_t expected = lines * received_ + lines * (lines - 1) / 2;
    if (sum_ != expected) [[unlikely]]
      throw_wrong(candidate, expected);
    sum_ = 0;
  }

  // The number of lines that dirty() writes in a part of `bytes` bytes.
  [[nodiscard]] static std::uint64_t lines(std::int64_t bytes) noexcept {
    return bytes < static_cast<std::int64_t>(word) ? 0 : static_cast<std::uint64_t>(bytes - 8) / line_bytes + 1;
  }

 private:
  // Out of line: clang would not inline received() with the making of this text, which costs a short message 10 ns.
  [[noreturn, gnu::noinline, gnu::cold]] void throw_wrong(std::string_view candidate, std::uint64_t expected) const {
    throw Error(std::string(candidate) + " delivered wrong data in message " + std::to_string(received_) +
                ": expected the sum " + std::to_string(expected) + ", found " + std::to_string(sum_));
  }

  static constexpr std::size_t word = 8;
  static constexpr std::size_t line_bytes = 64;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t sum_ = 0;
};

}  // namespace onehop::measure
