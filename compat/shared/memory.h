// Checks of the memory that a program names by an address and a length.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "onehop/detail/forks.h"

namespace onehop::compat {

// Throws BadInput if `bytes` are more than this machine has: they are no size, and an allocator may hand them out all
// the same, or end the program.
void check_size(std::size_t bytes);

// Throws BadInput if the bytes do not fit between the pointer and the end of all addresses.
void check_reach(const void* memory, std::size_t bytes);

// Both, and throws BadInput if the pointer is null although there are bytes. Whether the program owns the memory cannot
// be known.
void check_memory(const void* memory, std::size_t bytes);

// Throws BadInput if values of a type with this alignment cannot be at the address.
void check_alignment(const void* memory, std::size_t alignment);

[[noreturn]] void throw_forked();
[[noreturn]] void throw_negative(long long count);
[[noreturn]] void throw_too_many(unsigned long long count);

// Throws Error in a child that was forked after the ranks had met, when detail::forks had this value.
inline void check_process(std::uint32_t forks) {
  if (forks != detail::forks.load(std::memory_order_relaxed)) [[unlikely]]
    throw_forked();
}

// `count` values from `first`. Throws BadInput for a negative number and for an address that values of this type cannot
// have, and like check_memory.
template <class T, std::integral Count>
std::span<T> checked_span(T* first, Count count) {
  if (std::cmp_less(count, 0)) throw_negative(static_cast<long long>(count));
  const auto values = static_cast<std::size_t>(count);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(values, sizeof(T), &bytes)) throw_too_many(values);
  check_memory(static_cast<const void*>(first), bytes);
  if (bytes > 0) check_alignment(static_cast<const void*>(first), alignof(T));
  return {first, values};
}

template <class T>
T& checked_value(T* value) {
  check_memory(static_cast<const void*>(value), sizeof(T));
  check_alignment(static_cast<const void*>(value), alignof(T));
  return *value;
}

}  // namespace onehop::compat
