// Huge pages of shared memory, where the kernel can give some; the memory of every length is whole and can be mapped.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "src/group/shared_memory.h"

namespace onehop::detail {
namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20U;

// KiB of the mapping at `begin` that this process has mapped by huge pages.
std::int64_t mapped_by_huge_pages(const std::byte* begin) {
  std::ostringstream address;
  address << std::hex << reinterpret_cast<std::uintptr_t>(begin) << '-';
  std::ifstream file("/proc/self/smaps");
  bool found = false;
  for (std::string line; std::getline(file, line);) {
    if (!found) {
      found = line.find(address.str()) != std::string::npos;
    } else if (line.rfind("ShmemPmdMapped:", 0) == 0) {
      return std::stoll(line.substr(line.find(':') + 1));
    }
  }
  return 0;
}

bool kernel_collapses() {
  constexpr std::size_t huge = std::size_t{2} << 20U;
  constexpr int collapse = 25;
  const int fd = memfd_create("test", MFD_CLOEXEC);
  if (ftruncate(fd, 2 * huge) != 0) return false;
  void* const memory = mmap(nullptr, 2 * huge, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  // One of the huge pages of the file may lie at a suitable address; a wrong address fails with the same error.
  auto* const at = static_cast<std::byte*>(memory);
  at[0] = at[huge] = std::byte{1};
  const bool aligned = reinterpret_cast<std::uintptr_t>(at) % huge == 0;
  const bool works = aligned && madvise(at, huge, collapse) == 0;
  munmap(memory, 2 * huge);
  return works;
}

TEST(HugePages, LongMemoryHasThemAndIsZero) {
  for (const std::int64_t bytes : {4096 * std::int64_t{1}, 2 * mib - 4096, 2 * mib, 9 * mib / 2, 130 * mib}) {
    const SharedMemory own = SharedMemory::create(bytes, "a test");
    ASSERT_EQ(own.bytes(), bytes);
    // Another mapping of the same memory, as another process has it.
    const SharedMemory other = SharedMemory::open_at_once(getpid(), own.fd(), bytes);
    ASSERT_NE(other.data(), own.data());
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < bytes; ++i) wrong += own.data()[i] != std::byte{0} ? 1 : 0;
    EXPECT_EQ(wrong, 0);
    own.data()[0] = own.data()[bytes - 1] = std::byte{7};
    EXPECT_EQ(other.data()[0], std::byte{7});
    EXPECT_EQ(other.data()[bytes - 1], std::byte{7});
    for (const SharedMemory* memory : {&own, &other}) {
      EXPECT_TRUE(bytes < 2 * mib || reinterpret_cast<std::uintptr_t>(memory->data()) % (2 * mib) == 0);
    }
    const std::int64_t most = bytes / (2 * mib) * 2048;
    const std::int64_t found = mapped_by_huge_pages(own.data());
    if (most > 0 && found == 0 && !kernel_collapses()) {
      GTEST_SKIP() << "the kernel has no huge pages for shared memory";
    }
    EXPECT_LE(found, most) << bytes;
    if (most > 0) {
      EXPECT_GT(found, 0) << bytes;  // on a busy machine perhaps not all
    }
  }
}

}  // namespace
}  // namespace onehop::detail
