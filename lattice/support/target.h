// Which of the kernels that are compiled for several kinds of processors runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace onehop::lattice::detail {

enum class Target : std::uint8_t { portable, avx2, avx512 };

// Those that this processor can, the best last.
[[nodiscard]] const std::vector<Target>& targets();
[[nodiscard]] const char* to_string(Target target);

// The best; ONEHOP_SIMD names another one, and what was told `use_target` stands above both. Throws BadInput for a name that is none, or
// that this processor cannot.
[[nodiscard]] Target target();
void use_target(const std::string& name);

}  // namespace onehop::lattice::detail
