#include "quantum/kernels/kernels.h"

#include <cstdlib>

#include "onehop/error.h"

namespace onehop::quantum {
namespace {

template <typename T>
struct Named {
  const char* name;
  const Kernels<T>& (*kernels)();
};

// Those that run here, the best last.
template <typename T>
std::vector<Named<T>> available() {
  constexpr bool is_float = sizeof(T) == sizeof(float);
  const auto pick = [](auto of_float, auto of_double) {
    if constexpr (is_float) {
      return of_float;
    } else {
      return of_double;
    }
  };
  std::vector<Named<T>> all = {{"portable", pick(portable::float_kernels, portable::double_kernels)}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    all.push_back({"avx2", pick(avx2::float_kernels, avx2::double_kernels)});
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      all.push_back({"avx512", pick(avx512::float_kernels, avx512::double_kernels)});
    }
  }
#endif
  return all;
}

}  // namespace

std::vector<std::string> simd_names() {
  std::vector<std::string> names;
  for (const auto& each : available<double>()) names.emplace_back(each.name);
  return names;
}

template <typename T>
const Kernels<T>& kernels_named(const std::string& name) {
  std::string found;
  for (const auto& each : available<T>()) {
    if (name == each.name) return each.kernels();
    found += (found.empty() ? "" : ", ") + std::string(each.name);
  }
  throw BadInput("ONEHOP_SIMD: expected one of " + found + " (what this processor can), found '" + name + "'");
}

template <typename T>
const Kernels<T>& kernels() {
  if (const char* name = std::getenv("ONEHOP_SIMD"); name != nullptr && *name != '\0') return kernels_named<T>(name);
  static const Kernels<T>& best = available<T>().back().kernels();
  return best;
}

template const Kernels<float>& kernels<float>();
template const Kernels<double>& kernels<double>();
template const Kernels<float>& kernels_named<float>(const std::string&);
template const Kernels<double>& kernels_named<double>(const std::string&);

}  // namespace onehop::quantum
