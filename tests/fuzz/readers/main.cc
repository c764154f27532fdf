// libFuzzer's entry point. An input is a finding if its reader crashes, throws something other than BadInput, gives an
// error without a reason, breaks a property of the target, or takes too much memory. libFuzzer itself limits the time.
#include <sanitizer/allocator_interface.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "onehop/error.h"
#include "tests/fuzz/readers/target.h"

namespace {

constexpr std::size_t allowance = std::size_t{256} << 10U;  // bytes, for messages and the first blocks of containers
constexpr std::size_t longest_message = 4096;

std::size_t live = 0;
std::size_t peak = 0;

void on_allocation(const volatile void*, std::size_t size) {
  live += size;
  if (live > peak) peak = live;
}

void on_release(const volatile void* memory) {
  live -= __sanitizer_get_allocated_size(const_cast<const void*>(memory));
}

}  // namespace

namespace onehop::fuzz {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

}  // namespace onehop::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  __sanitizer_install_malloc_and_free_hooks(on_allocation, on_release);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using onehop::fuzz::require;
  const std::size_t before = peak = live;
  try {
    onehop::fuzz::read_input({reinterpret_cast<const char*>(data), size});
  } catch (const onehop::BadInput& error) {
    const std::size_t length = std::strlen(error.what());
    require(length > 0 && length <= longest_message, "an error has a message of 1 to 4096 bytes");
  }
  if (peak - before > allowance + onehop::fuzz::bytes_per_byte * size) {
    std::fprintf(stderr, "violated: reading %zu bytes took %zu bytes of memory, expected at most %zu\n", size,
                 peak - before, allowance + onehop::fuzz::bytes_per_byte * size);
    std::abort();
  }
  return 0;
}
