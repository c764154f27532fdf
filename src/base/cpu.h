// The instruction sets that kernels are compiled for, and the choice between them. Every kernel of onehop uses this
// detection and obeys the environment variable ONEHOP_SIMD. Also the pause of a polling loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onehop::cpu {

// The levels are ordered: a processor that supports one supports those before it.
//   portable  the baseline of the architecture (SSE2 on x86-64)
//   avx2      AVX2, FMA and F16C
//   avx512    AVX-512 F, BW, DQ and VL
enum class Level : std::uint8_t { portable, avx2, avx512 };

[[nodiscard]] std::string_view to_string(Level level) noexcept;

// The levels that this processor supports, the best last.
[[nodiscard]] const std::vector<Level>& levels();

// Throws BadInput, with a message that begins with `what`, if the name is unknown or the processor lacks the level.
[[nodiscard]] Level level_named(std::string_view name, std::string_view what);

namespace detail {
// The level in use; -1 until the first call of level().
extern std::atomic<int> current;
[[nodiscard]] Level choose_level();
[[nodiscard]] Level choose_level_or_best() noexcept;
}  // namespace detail

// The level that every kernel uses: the one given to use_level, else ONEHOP_SIMD, else the best. The first call reads
// the environment. Throws BadInput if ONEHOP_SIMD is unknown or unsupported; so does the creation of a group.
[[nodiscard]] inline Level level() {
  const int found = detail::current.load(std::memory_order_relaxed);
  return found >= 0 ? static_cast<Level>(found) : detail::choose_level();
}

// The same for code that must not throw. Returns the best level if ONEHOP_SIMD is invalid, which level() reports.
[[nodiscard]] inline Level level_or_best() noexcept {
  const int found = detail::current.load(std::memory_order_relaxed);
  return found >= 0 ? static_cast<Level>(found) : detail::choose_level_or_best();
}

// Whether ONEHOP_SIMD or use_level named the level. If not, a kernel may choose a supported level by measurement.
[[nodiscard]] bool is_level_given();

// For tests and benchmarks: sets the level for this process; "" restores the default. Objects keep the kernels that
// they have already chosen. Throws BadInput as level_named does.
void use_level(std::string_view name);

// The manufacturer of the processor.
[[nodiscard]] bool is_amd() noexcept;
[[nodiscard]] bool is_intel() noexcept;

// The processor's family as its manufacturer counts, 0 where it has none: AMD's 25 are Zen 3 and Zen 4, 26 Zen 5.
[[nodiscard]] int family() noexcept;

// Tells the processor that this thread polls, for some 10 ns, so that its sibling on the core runs faster.
inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace onehop::cpu
