// The instruction sets that kernels are compiled for, and the choice between them: one detection and one environment variable
// (ONEHOP_SIMD) for every kernel of onehop.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onehop::cpu {

// The levels are ordered: a processor that supports one supports those before it.
//   portable  what the compiler assumes of every processor of the architecture (SSE2 on x86-64)
//   avx2      AVX2, FMA and F16C
//   avx512    AVX-512 F, BW, DQ and VL
enum class Level : std::uint8_t { portable, avx2, avx512 };

[[nodiscard]] std::string_view to_string(Level level) noexcept;

// The levels that this processor supports, the best last.
[[nodiscard]] const std::vector<Level>& levels();

// The level of this name. Throws BadInput, which begins with `what`, if the name is unknown or this processor does not support it.
[[nodiscard]] Level level_named(std::string_view name, std::string_view what);

namespace detail {
// The level in use; -1 until somebody asks.
extern std::atomic<int> current;
[[nodiscard]] Level choose_level();
[[nodiscard]] Level choose_level_or_best() noexcept;
}  // namespace detail

// The level that every kernel uses: the one given to use_level, else the one that ONEHOP_SIMD names, else the best. The environment is
// read at the first call. Throws BadInput for a value of ONEHOP_SIMD that is unknown or unsupported: every group does when it is made.
[[nodiscard]] inline Level level() {
  const int found = detail::current.load(std::memory_order_relaxed);
  return found >= 0 ? static_cast<Level>(found) : detail::choose_level();
}

// The same for code that may not throw: with a wrong ONEHOP_SIMD, which others report, the best level.
[[nodiscard]] inline Level level_or_best() noexcept {
  const int found = detail::current.load(std::memory_order_relaxed);
  return found >= 0 ? static_cast<Level>(found) : detail::choose_level_or_best();
}

// Whether ONEHOP_SIMD or use_level named the level. If not, a kernel may choose among the supported levels by measurement.
[[nodiscard]] bool is_level_given();

// For tests and benchmarks: makes every kernel of this process use this level from now on. "" returns to the default. Kernels that an
// object has already chosen stay as they are. Throws BadInput as level_named does.
void use_level(std::string_view name);

// The manufacturer of the processor.
[[nodiscard]] bool is_amd() noexcept;
[[nodiscard]] bool is_intel() noexcept;

}  // namespace onehop::cpu
