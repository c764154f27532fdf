#include "src/base/cpu.h"

#include "onehop/error.h"
#include "src/base/env.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace onehop::cpu {
namespace {

std::atomic<bool> given_by_program{false};

#if defined(__x86_64__)
// __builtin_cpu_supports also checks that the operating system saves the registers. Clang has no name for F16C, so its
// bit is read with cpuid; F16C uses AVX registers only.
bool has_avx2() {
  __builtin_cpu_init();
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && f16c;
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
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
  __builtin_cpu_init();
  return __builtin_cpu_is("amd");
#else
  return false;
#endif
}

bool is_intel() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}

}  // namespace onehop::cpu
