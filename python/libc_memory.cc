// memcpy, memmove, memset and memcmp of glibc for an extension that zig links.
//
// zig links its own versions, which use 16-byte registers, whenever something needs another function of its run-time
// library, such as the division of 128-bit integers. A definition in the extension comes before those. Each one calls
// glibc's, under the name with a version, because the plain name is its own.
#include <cstddef>

#define ONEHOP_LIBC(name, version) __asm__(".symver libc_" #name ", " #name "@" version)
#if defined(__x86_64__)
ONEHOP_LIBC(memcpy, "GLIBC_2.14");
ONEHOP_LIBC(memmove, "GLIBC_2.2.5");
ONEHOP_LIBC(memset, "GLIBC_2.2.5");
ONEHOP_LIBC(memcmp, "GLIBC_2.2.5");
#elif defined(__aarch64__)
ONEHOP_LIBC(memcpy, "GLIBC_2.17");
ONEHOP_LIBC(memmove, "GLIBC_2.17");
ONEHOP_LIBC(memset, "GLIBC_2.17");
ONEHOP_LIBC(memcmp, "GLIBC_2.17");
#else
#error "the versions of these functions in the glibc of this architecture are unknown: build without ONEHOP_LIBC_MEMORY"
#endif

extern "C" {

void* libc_memcpy(void* to, const void* from, std::size_t bytes);
void* libc_memmove(void* to, const void* from, std::size_t bytes);
void* libc_memset(void* to, int value, std::size_t bytes);
int libc_memcmp(const void* a, const void* b, std::size_t bytes);

[[gnu::visibility("hidden")]] void* memcpy(void* to, const void* from, std::size_t bytes) {
  return libc_memcpy(to, from, bytes);
}
[[gnu::visibility("hidden")]] void* memmove(void* to, const void* from, std::size_t bytes) {
  return libc_memmove(to, from, bytes);
}
[[gnu::visibility("hidden")]] void* memset(void* to, int value, std::size_t bytes) {
  return libc_memset(to, value, bytes);
}
[[gnu::visibility("hidden")]] int memcmp(const void* a, const void* b, std::size_t bytes) {
  return libc_memcmp(a, b, bytes);
}

}  // extern "C"
