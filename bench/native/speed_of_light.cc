#include "bench/native/speed_of_light.h"

#include <cstring>

#include "measure/rounds.h"
#include "src/base/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace onehop::bench {
namespace {

constexpr std::size_t line = 64;
constexpr std::int64_t beside_flag = 56;  // bytes that fit into the flag's line

void copy_plain(std::byte* to, const std::byte* from, std::size_t n) { std::memcpy(to, from, n); }

#if defined(__x86_64__)
// Sources and slots are aligned to cache lines; the rest of the last line is copied by memcpy.
void copy_prefetching(std::byte* to, const std::byte* from, std::size_t n) {
  constexpr std::size_t ahead = 1024;
  std::size_t at = 0;
  for (; at + line <= n; at += line) {
    __builtin_prefetch(to + at + ahead, 1, 3);
    for (std::size_t i = 0; i < line; i += 16) {
      _mm_store_si128(reinterpret_cast<__m128i*>(to + at + i),
                      _mm_load_si128(reinterpret_cast<const __m128i*>(from + at + i)));
    }
  }
  std::memcpy(to + at, from + at, n - at);
}

__attribute__((target("cldemote"))) void copy_demoting(std::byte* to, const std::byte* from, std::size_t n) {
  std::size_t at = 0;
  for (; at + line <= n; at += line) {
    std::memcpy(to + at, from + at, line);
    _cldemote(to + at);
  }
  std::memcpy(to + at, from + at, n - at);
}

void copy_past_caches(std::byte* to, const std::byte* from, std::size_t n) {
  std::size_t at = 0;
  for (; at + line <= n; at += line) {
    for (std::size_t i = 0; i < line; i += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + i),
                       _mm_load_si128(reinterpret_cast<const __m128i*>(from + at + i)));
    }
  }
  std::memcpy(to + at, from + at, n - at);
  _mm_sfence();
}

__attribute__((target("avx512f"))) void copy_past_caches_512(std::byte* to, const std::byte* from, std::size_t n) {
  std::size_t at = 0;
  for (; at + line <= n; at += line) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at), _mm512_load_si512(from + at));
  }
  std::memcpy(to + at, from + at, n - at);
  _mm_sfence();
}
#endif

struct Copy {
  const char* name;
  void (*copy)(std::byte*, const std::byte*, std::size_t);
  std::int64_t from_bytes;
  std::int64_t to_bytes;
};

std::vector<Copy> copies() {
  constexpr std::int64_t no_end = std::int64_t{1} << 62;
  std::vector<Copy> all = {{"memcpy", copy_plain, 0, no_end}};
#if defined(__x86_64__)
  all.push_back({"prefetch", copy_prefetching, 512, 1 << 20});
  if (cpu::is_intel()) all.push_back({"demote", copy_demoting, 64, 16 << 10});
  all.push_back({"stream", cpu::level() == cpu::Level::avx512 ? copy_past_caches_512 : copy_past_caches, 512, no_end});
#endif
  return all;
}

}  // namespace

std::vector<SpeedOfLightVariant> speed_of_light_variants(std::int64_t bytes, bool one_slot) {
  std::vector<SpeedOfLightVariant> variants;
  const auto add = [&](const Copy& copy, std::int64_t chunk) {
    const std::string name =
        std::string(copy.name) + (chunk == 0 ? "" : ", chunks of " + std::to_string(chunk >> 10) + " KiB");
    variants.push_back({name, copy.copy, chunk, 2});
    if (one_slot && bytes > beside_flag) variants.push_back({name + ", one slot", copy.copy, chunk, 1});
  };
  for (const Copy& copy : copies()) {
    if (bytes < copy.from_bytes || bytes > copy.to_bytes) continue;
    add(copy, 0);
    for (const std::int64_t chunk : {1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10}) {
      // More than a few dozen increments of the flag per message were never faster.
      if (chunk < bytes && bytes / chunk <= 64) add(copy, chunk);
    }
  }
  return variants;
}

SpeedOfLight::SpeedOfLight(const Group& group, std::int64_t bytes)
    : bytes_(bytes),
      stride_((bytes + 127) / 128 * 128),
      beside_flag_(bytes <= beside_flag),
      variant_{"memcpy", copy_plain, 0, 2},
      memories_(measure::memory_of_all(group, flag_bytes + 2 * stride_)),
      source_memory_(static_cast<std::size_t>(bytes) + 4096) {
  own_ = memories_[static_cast<std::size_t>(group.rank())].data();
  theirs_ = memories_[static_cast<std::size_t>(1 - group.rank())].data();
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(source_memory_.data()) & 4095;
  source_ = std::span<std::byte>(source_memory_).subspan(head, static_cast<std::size_t>(bytes));
}

}  // namespace onehop::bench
