#include "src/channel/store.h"

#include <cstdint>
#include <cstring>

#include "src/base/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace onehop::detail {
namespace {

void store_plain(std::byte* to, const std::byte* from, std::size_t n) { std::memcpy(to, from, n); }

#if defined(__x86_64__)

constexpr std::size_t line = 64;

// Copies up to the next cache line of `to`; returns the number of bytes.
std::size_t align(std::byte* to, const std::byte* from, std::size_t n) {
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(to) & (line - 1);
  const std::size_t first = head < n ? head : n;
  std::memcpy(to, from, first);
  return first;
}

__attribute__((target("prfchw"))) void store_prefetch(std::byte* to, const std::byte* from, std::size_t n) {
  constexpr std::size_t ahead = 1024;
  for (std::size_t i = 0; i < n; i += line) {
    __builtin_prefetch(to + i + ahead, 1);  // prefetchw, with this target
    std::memcpy(to + i, from + i, n - i < line ? n - i : line);
  }
}

__attribute__((target("cldemote"))) void store_demote(std::byte* to, const std::byte* from, std::size_t n) {
  for (std::size_t i = 0; i < n; i += line) {
    std::memcpy(to + i, from + i, n - i < line ? n - i : line);
    _cldemote(to + i);
  }
}

void store_nontemporal_sse2(std::byte* to, const std::byte* from, std::size_t n) {
  std::size_t i = align(to, from, n);
  for (; i + 16 <= n; i += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
  std::memcpy(to + i, from + i, n - i);
}

__attribute__((target("avx"))) void store_nontemporal_avx(std::byte* to, const std::byte* from, std::size_t n) {
  std::size_t i = align(to, from, n);
  for (; i + 32 <= n; i += 32) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
  }
  std::memcpy(to + i, from + i, n - i);
}

__attribute__((target("avx512f"))) void store_nontemporal_avx512(std::byte* to, const std::byte* from, std::size_t n) {
  std::size_t i = align(to, from, n);
  for (; i + line <= n; i += line)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
  std::memcpy(to + i, from + i, n - i);
}

// Copy functions with non-temporal stores, without a fence and with one.
struct Streaming {
  StoreFunction piece;
  StoreFunction whole;
};

template <StoreFunction piece>
void fenced(std::byte* to, const std::byte* from, std::size_t n) {
  piece(to, from, n);
  _mm_sfence();
}

Streaming streaming() {
  switch (cpu::level()) {
    case cpu::Level::avx512:
      return {store_nontemporal_avx512, fenced<store_nontemporal_avx512>};
    case cpu::Level::avx2:
      return {store_nontemporal_avx, fenced<store_nontemporal_avx>};
    case cpu::Level::portable:
      break;
  }
  return {store_nontemporal_sse2, fenced<store_nontemporal_sse2>};
}

#endif

}  // namespace

StoreFunction piece_function(StoreKind kind) {
#if defined(__x86_64__)
  switch (kind) {
    case StoreKind::plain:
      return store_plain;
    case StoreKind::prefetch:
      return store_prefetch;  // both hints do nothing on processors that lack them
    case StoreKind::demote:
      return store_demote;
    case StoreKind::nontemporal:
      return streaming().piece;
  }
#endif
  static_cast<void>(kind);
  return store_plain;
}

StoreFunction store_function(StoreKind kind) {
#if defined(__x86_64__)
  if (kind == StoreKind::nontemporal) return streaming().whole;
#endif
  return piece_function(kind);
}

void finish_stores(StoreKind kind) noexcept {
#if defined(__x86_64__)
  if (kind == StoreKind::nontemporal) _mm_sfence();
#endif
  static_cast<void>(kind);
}

}  // namespace onehop::detail
