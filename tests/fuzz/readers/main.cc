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

constexpr std::size_t longest_message = 4096;
constexpr std::size_t bytes_per_refused_byte = 10;

std::size_t live = 0;
std::size_t peak = 0;
std::size_t before = 0;
std::size_t taken = 0;

void on_allocation(const volatile void*, std::size_t size) {
  live += size;
  if (live > peak) peak = live;
}

void on_release(const volatile void* memory) {
  live -= __sanitizer_get_allocated_size(const_cast<const void*>(memory));
}

void read_once(std::string_view input) {
  using onehop::fuzz::require;
  std::size_t factor = onehop::fuzz::bytes_per_byte;
  taken = 0;
  try {
    onehop::fuzz::read_input(input);
  } catch (const onehop::BadInput& error) {
    const std::size_t length = std::strlen(error.what());
    require(length > 0 && length <= longest_message, "an error has a message of 1 to 4096 bytes");
    factor = bytes_per_refused_byte;
  }
  const std::size_t limit = onehop::fuzz::allowance + factor * input.size();
  if (input.size() >= onehop::fuzz::large) {
    std::fprintf(stderr, "%-40.40s %5.2f bytes of memory per byte\n", input.data(),
                 static_cast<double>(taken) / static_cast<double>(input.size()));
  }
  if (taken > limit) {
    std::fprintf(stderr, "violated: reading %zu bytes '%.60s' took %zu bytes of memory, expected at most %zu\n",
                 input.size(), input.data(), taken, limit);
    std::abort();
  }
}

}  // namespace

namespace onehop::fuzz {

Measurement::Measurement() { before = peak = live; }

Measurement::~Measurement() { taken = peak - before; }

std::string repeated(const std::string& begin, const std::string& part, const std::string& between,
                     const std::string& end) {
  std::string text = begin + part;
  text.reserve(large + end.size());
  while (text.size() + between.size() + part.size() + end.size() <= large) text += between + part;
  return text + end + std::string(large - text.size() - end.size(), ' ');
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

}  // namespace onehop::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  __sanitizer_install_malloc_and_free_hooks(on_allocation, on_release);
  for (const std::string& input : onehop::fuzz::large_inputs()) {
    read_once(input);
    read_once(input + '?');
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_once({reinterpret_cast<const char*>(data), size});
  return 0;
}
