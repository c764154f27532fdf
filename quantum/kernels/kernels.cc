#include "quantum/kernels/kernels.h"

#include "src/base/cpu.h"

namespace onehop::quantum {
namespace {

template <typename T>
const Kernels<T>& kernels_of(cpu::Level level) {
  const auto pick = [](auto of_float, auto of_double) -> const Kernels<T>& {
    if constexpr (sizeof(T) == sizeof(float)) {
      return of_float();
    } else {
      return of_double();
    }
  };
#if defined(__x86_64__)
  if (level == cpu::Level::avx512) return pick(avx512::float_kernels, avx512::double_kernels);
  if (level == cpu::Level::avx2) return pick(avx2::float_kernels, avx2::double_kernels);
#endif
  static_cast<void>(level);
  return pick(portable::float_kernels, portable::double_kernels);
}

}  // namespace

std::vector<std::string> simd_names() {
  std::vector<std::string> names;
  for (const cpu::Level each : cpu::levels()) names.emplace_back(to_string(each));
  return names;
}

template <typename T>
const Kernels<T>& kernels_named(const std::string& name) {
  return kernels_of<T>(cpu::level_named(name, "kernels"));
}

template <typename T>
const Kernels<T>& kernels() {
  return kernels_of<T>(cpu::level());
}

template const Kernels<float>& kernels<float>();
template const Kernels<double>& kernels<double>();
template const Kernels<float>& kernels_named<float>(const std::string&);
template const Kernels<double>& kernels_named<double>(const std::string&);

}  // namespace onehop::quantum
