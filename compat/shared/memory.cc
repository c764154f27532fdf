#include "compat/shared/memory.h"

#include <unistd.h>

#include <cstdint>
#include <string>

#include "onehop/error.h"

namespace onehop::compat {

void check_size(std::size_t bytes) {
  static const std::size_t machine =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (bytes <= machine) return;
  throw BadInput("expected at most the " + std::to_string(machine) + " bytes that this machine has, found " +
                 std::to_string(bytes));
}

void check_reach(const void* memory, std::size_t bytes) {
  // No program's memory is in the upper half of the addresses.
  if (bytes <= PTRDIFF_MAX && reinterpret_cast<std::uintptr_t>(memory) <= PTRDIFF_MAX - bytes) return;
  throw BadInput("expected fewer bytes than there are addresses behind the memory, found " + std::to_string(bytes));
}

void check_memory(const void* memory, std::size_t bytes) {
  if (memory == nullptr && bytes > 0) {
    throw BadInput("expected memory of " + std::to_string(bytes) + " bytes, found a null pointer");
  }
  check_size(bytes);
  check_reach(memory, bytes);
}

void check_alignment(const void* memory, std::size_t alignment) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  if (address % alignment == 0) return;
  throw BadInput("expected memory at a multiple of " + std::to_string(alignment) + " bytes, found address " +
                 std::to_string(address));
}

void throw_forked() {
  throw Error("process " + std::to_string(getpid()) +
              " was forked from a rank and is none; call this in the process that the launcher started");
}

void throw_negative(long long count) {
  throw BadInput("expected a number of 0 or more, found " + std::to_string(count));
}

void throw_too_many(unsigned long long count) {
  throw BadInput("expected fewer values than there are addresses, found " + std::to_string(count));
}

}  // namespace onehop::compat
