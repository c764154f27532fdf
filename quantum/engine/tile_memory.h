// Memory for the tile that a thread works on.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace onehop::quantum {

// Returns this thread's memory for at least `numbers` numbers, at most some megabytes, aligned to 64 bytes. It is
// kept between passes and runs, because an allocation would take longer than a gate on a small state, and allocations
// of changing sizes would fragment the heap. A call with more numbers invalidates the previous result.
template <typename T>
T* tile_memory(std::size_t numbers) {
  constexpr std::align_val_t alignment{64};
  struct Delete {
    void operator()(T* memory) const { ::operator delete[](memory, alignment); }
  };
  thread_local std::unique_ptr<T[], Delete> memory;
  thread_local std::size_t held = 0;
  if (numbers > held) {
    memory.reset();
    held = 0;
    memory.reset(new (alignment) T[numbers]);
    held = numbers;
  }
  return memory.get();
}

}  // namespace onehop::quantum
