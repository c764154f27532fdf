#include "src/base/cpu.h"

#include <cstring>

#include "onehop/error.h"
#include "src/base/env.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace onehop::cpu {
namespace {

std::atomic<bool> given_by_program{false};

#if defined(__x86_64__)
// By cpuid and not by __builtin_cpu_supports, which finds nothing in programs that zig links: its run-time library does
// not fill in the compiler's table.
struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf) {
  Registers found;
  if (__get_cpuid_count(leaf, 0, &found.a, &found.b, &found.c, &found.d) == 0) return {};
  return found;
}

constexpr bool has_bits(unsigned word, unsigned bits) { return (word & bits) == bits; }

// Whether the operating system saves these registers: 6 for SSE and AVX, 0xe6 for those of AVX-512 too.
bool saves_registers(unsigned wanted) {
  constexpr unsigned osxsave = 1U << 27;
  if (!has_bits(cpuid(1).c, osxsave)) return false;
  unsigned low = 0;
  unsigned high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return has_bits(low, wanted);
}

bool has_avx2() {
  constexpr unsigned fma = 1U << 12;
  constexpr unsigned avx = 1U << 28;
  constexpr unsigned f16c = 1U << 29;
  constexpr unsigned avx2 = 1U << 5;
  return saves_registers(6) && has_bits(cpuid(1).c, fma | avx | f16c) && has_bits(cpuid(7).b, avx2);
}

bool has_avx512() {
  constexpr unsigned f = 1U << 16;
  constexpr unsigned dq = 1U << 17;
  constexpr unsigned bw = 1U << 30;
  constexpr unsigned vl = 1U << 31;
  return has_avx2() && saves_registers(0xe6) && has_bits(cpuid(7).b, f | dq | bw | vl);
}

bool is_made_by(std::string_view vendor) {
  const Registers found = cpuid(0);
  char name[12];
  std::memcpy(name, &found.b, 4);
  std::memcpy(name + 4, &found.d, 4);
  std::memcpy(name + 8, &found.c, 4);
  return vendor == std::string_view(name, sizeof name);
}
#endif

}  // namespace

std::string_view to_string(Level level) noexcept {
  switch (level) {
    case Level::avx2:
      return "avx2";
    case Level::avx512:
      return "avx512";
    case Level::portable:
      break;
  }
  return "portable";
}

const std::vector<Level>& levels() {
  static const std::vector<Level> all = [] {
    std::vector<Level> found{Level::portable};
#if defined(__x86_64__)
    if (has_avx2()) found.push_back(Level::avx2);
    if (has_avx512()) found.push_back(Level::avx512);
#endif
    return found;
  }();
  return all;
}

Level level_named(std::string_view name, std::string_view what) {
  std::string supported;
  for (const Level each : levels()) {
    if (name == to_string(each)) return each;
    supported.append(supported.empty() ? "" : ", ").append(to_string(each));
  }
  throw BadInput(std::string(what) + ": expected one of " + supported +
                 " (the instruction sets that this processor supports), found '" + std::string(name) + "'");
}

namespace detail {

std::atomic<int> current{-1};

Level choose_level() {
  const auto name = env::text("ONEHOP_SIMD");
  const Level found = name ? level_named(*name, "ONEHOP_SIMD") : levels().back();
  current.store(static_cast<int>(found), std::memory_order_relaxed);
  return found;
}

Level choose_level_or_best() noexcept {
  try {
    return choose_level();
  } catch (const BadInput&) {
    return levels().back();
  }
}

}  // namespace detail

bool is_level_given() {
  return given_by_program.load(std::memory_order_relaxed) || env::text("ONEHOP_SIMD").has_value();
}

void use_level(std::string_view name) {
  detail::current.store(name.empty() ? -1 : static_cast<int>(level_named(name, "instruction set")),
                        std::memory_order_relaxed);
  given_by_program.store(!name.empty(), std::memory_order_relaxed);
}

bool is_amd() noexcept {
#if defined(__x86_64__)
  return is_made_by("AuthenticAMD");
#else
  return false;
#endif
}

bool is_intel() noexcept {
#if defined(__x86_64__)
  return is_made_by("GenuineIntel");
#else
  return false;
#endif
}

int family() noexcept {
#if defined(__x86_64__)
  const unsigned version = cpuid(1).a;
  const unsigned base = version >> 8 & 0xfU;
  constexpr unsigned extended = 0xf;  // then a second field is added
  return static_cast<int>(base == extended ? base + (version >> 20 & 0xffU) : base);
#else
  return 0;
#endif
}

}  // namespace onehop::cpu
