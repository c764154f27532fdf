#include "lattice/support/target.h"

#include <atomic>
#include <cstdlib>

#include "onehop/error.h"

namespace onehop::lattice::detail {

namespace {

std::atomic<int> chosen{-1};

Target named(const std::string& name, const char* where) {
  std::string found;
  for (const Target each : targets()) {
    if (name == to_string(each)) return each;
    found += (found.empty() ? "" : ", ") + std::string(to_string(each));
  }
  throw BadInput(std::string(where) + ": expected one of " + found + " (what this processor can), found '" + name +
                 "'");
}

}  // namespace

const std::vector<Target>& targets() {
  static const std::vector<Target> all = [] {
    std::vector<Target> found{Target::portable};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      found.push_back(Target::avx2);
      if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
          __builtin_cpu_supports("avx512vl")) {
        found.push_back(Target::avx512);
      }
    }
#endif
    return found;
  }();
  return all;
}

const char* to_string(Target target) {
  switch (target) {
    case Target::avx2:
      return "avx2";
    case Target::avx512:
      return "avx512";
    default:
      return "portable";
  }
}

Target target() {
  if (const int number = chosen.load(std::memory_order_relaxed); number >= 0) return static_cast<Target>(number);
  static const Target usual = [] {
    const char* name = std::getenv("ONEHOP_SIMD");
    return name != nullptr && *name != '\0' ? named(name, "ONEHOP_SIMD") : targets().back();
  }();
  return usual;
}

void use_target(const std::string& name) {
  chosen.store(name.empty() ? -1 : static_cast<int>(named(name, "kind of processor")), std::memory_order_relaxed);
}

}  // namespace onehop::lattice::detail
