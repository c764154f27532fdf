// The speed of light of a message between two ranks: a copy into a slot in shared memory and a flag, without any
// library. It deliberately shares no code with onehop's channels, because a cost common to both would not show.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "onehop/group.h"
#include "src/base/cpu.h"
#include "src/group/shared_memory.h"

namespace onehop::bench {

// How the message is copied.
struct SpeedOfLightVariant {
  std::string name;
  void (*copy)(std::byte* to, const std::byte* from, std::size_t bytes) = nullptr;
  std::int64_t chunk = 0;  // bytes copied before each increment of the flag; 0: the whole message
  // Two slots in turn, or one. One suffices for a ping-pong, in which a rank writes only after the other has answered.
  unsigned slots = 2;
};

// Returns the variants worth trying on this processor for this length; with `one_slot` also those with one slot.
[[nodiscard]] std::vector<SpeedOfLightVariant> speed_of_light_variants(std::int64_t bytes, bool one_slot);

// Both directions between two ranks: slots and one flag each way.
class SpeedOfLight {
 public:
  // Collective over the two ranks of `group`.
  SpeedOfLight(const Group& group, std::int64_t bytes);

  // Switches to another variant. Both ranks must switch between the same two messages.
  void use(const SpeedOfLightVariant& variant) noexcept { variant_ = variant; }

  [[nodiscard]] std::span<std::byte> source() noexcept { return source_; }

  void send() noexcept {
    if (beside_flag_) {
      std::memcpy(theirs_ + 8, source_.data(), static_cast<std::size_t>(bytes_));
      raise();
      return;
    }
    std::byte* to = theirs_ + flag_bytes + (out_ & (variant_.slots - 1)) * stride_;
    ++out_;
    const std::int64_t chunk = chunk_bytes();
    for (std::int64_t at = 0; at < bytes_; at += chunk) {
      const std::int64_t length = chunk < bytes_ - at ? chunk : bytes_ - at;
      variant_.copy(to + at, source_.data() + at, static_cast<std::size_t>(length));
      raise();
    }
  }

  // Calls read(part) for each part as it arrives.
  template <class Read>
  void receive(Read&& read) noexcept {
    if (beside_flag_) {
      await();
      read(std::span<const std::byte>(own_ + 8, static_cast<std::size_t>(bytes_)));
      return;
    }
    const std::byte* from = own_ + flag_bytes + (in_ & (variant_.slots - 1)) * stride_;
    ++in_;
    const std::int64_t chunk = chunk_bytes();
    for (std::int64_t at = 0; at < bytes_; at += chunk) {
      const std::int64_t length = chunk < bytes_ - at ? chunk : bytes_ - at;
      await();
      read(std::span<const std::byte>(from + at, static_cast<std::size_t>(length)));
    }
  }

 private:
  static constexpr std::int64_t flag_bytes = 128;

  [[nodiscard]] std::int64_t chunk_bytes() const noexcept { return variant_.chunk == 0 ? bytes_ : variant_.chunk; }
  static std::atomic<std::uint64_t>& flag(std::byte* memory) noexcept {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory);
  }
  void raise() noexcept { flag(theirs_).store(++raised_, std::memory_order_release); }
  void await() noexcept {
    ++awaited_;
    while (flag(own_).load(std::memory_order_acquire) < awaited_) cpu::pause();
  }

  std::int64_t bytes_;
  std::int64_t stride_;
  bool beside_flag_;  // whether the message fits into the flag's cache line
  SpeedOfLightVariant variant_;
  std::vector<detail::SharedMemory> memories_;
  std::byte* own_ = nullptr;
  std::byte* theirs_ = nullptr;
  std::vector<std::byte> source_memory_;
  std::span<std::byte> source_;
  std::uint64_t raised_ = 0;
  std::uint64_t awaited_ = 0;
  std::uint64_t out_ = 0;
  std::uint64_t in_ = 0;
};

}  // namespace onehop::bench
