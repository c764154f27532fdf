#include "bench/native/bare_exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "measure/rounds.h"
#include "src/base/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace onehop::bench {
namespace {

constexpr std::int64_t flag_bytes = 128;

void copy_plain(std::byte* to, const std::byte* from, std::size_t n) { std::memcpy(to, from, n); }

#if defined(__x86_64__)
void copy_past_caches(std::byte* to, const std::byte* from, std::size_t n) {
  constexpr std::size_t line = 64;
  std::size_t at = std::min<std::size_t>(n, -reinterpret_cast<std::uintptr_t>(to) & (line - 1));
  std::memcpy(to, from, at);
  for (; at + line <= n; at += line) {
    for (std::size_t i = 0; i < line; i += sizeof(__m128i)) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + i)));
    }
  }
  std::memcpy(to + at, from + at, n - at);
}
#endif

std::int64_t stride_of(std::int64_t bytes) { return (bytes + flag_bytes - 1) / flag_bytes * flag_bytes; }

}  // namespace

std::vector<BareCopy> bare_copies() {
  std::vector<BareCopy> all = {{"memcpy", copy_plain}};
#if defined(__x86_64__)
  all.push_back({"stream", copy_past_caches});
#endif
  return all;
}

BareExchange::BareExchange(const Group& group, const Schedule& schedule, std::span<const std::span<std::byte>> arrays)
    : copy_(copy_plain) {
  const PackingLines::Crossing bytes = PackingLines::crossing(schedule, group.rank());
  auto memories = measure::memory_of_all(group, flag_bytes + 2 * stride_of(bytes.in));
  own_memory_ = std::move(memories[static_cast<std::size_t>(group.rank())]);
  their_memory_ = std::move(memories[static_cast<std::size_t>(1 - group.rank())]);
  for (const std::int64_t slot : {0, 1}) {
    const PackingLines::Slots slots{their_memory_.data() + flag_bytes + slot * stride_of(bytes.out),
                                    own_memory_.data() + flag_bytes + slot * stride_of(bytes.in)};
    lines_.emplace_back(schedule, group.rank(), arrays, slots);
  }
}

void BareExchange::run() noexcept {
  PackingLines& lines = lines_[exchanges_ & 1U];
  ++exchanges_;
  lines.pack(copy_);
#if defined(__x86_64__)
  _mm_sfence();
#endif
  flag(their_memory_.data()).store(exchanges_, std::memory_order_release);
  lines.move_inside();
  while (flag(own_memory_.data()).load(std::memory_order_acquire) < exchanges_) cpu::pause();
  lines.unpack();
}

}  // namespace onehop::bench
