#include "src/base/cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "collectives/reduce.h"
#include "lattice/su3/su3_kernels.h"
#include "lattice/support/best_loop.h"
#include "lattice/wilson/wilson_storage.h"
#include "onehop/error.h"
#include "onehop/group.h"
#include "poisson/poisson_kernels.h"
#include "quantum/kernels/kernels.h"
#include "src/channel/store.h"
#include "src/codec/codec_loops.h"
#include "src/codec/codec_run.h"
#include "src/plan/direct/run_exchange.h"
#include "tests/support/thrown.h"

namespace onehop {
namespace {

using cpu::Level;

// Sets ONEHOP_SIMD and makes kernels read it again.
class SimdVariable {
 public:
  explicit SimdVariable(const std::string& value) {
    if (const char* const text = std::getenv("ONEHOP_SIMD")) before_ = text;
    setenv("ONEHOP_SIMD", value.c_str(), 1);
    cpu::use_level("");
  }
  ~SimdVariable() {
    if (before_) {
      setenv("ONEHOP_SIMD", before_->c_str(), 1);
    } else {
      unsetenv("ONEHOP_SIMD");
    }
    cpu::use_level("");
  }
  SimdVariable(const SimdVariable&) = delete;
  SimdVariable& operator=(const SimdVariable&) = delete;

 private:
  std::optional<std::string> before_;
};

template <class Visit>
void for_each_level(const Visit& visit) {
  for (const Level level : cpu::levels()) {
    const SimdVariable variable{std::string(to_string(level))};
    ASSERT_EQ(cpu::level(), level);
    EXPECT_TRUE(cpu::is_level_given());
    visit(level);
  }
}

TEST(Cpu, TheBestLevelIsTheDefault) {
  const SimdVariable empty{""};
  EXPECT_EQ(cpu::level(), cpu::levels().back());
  EXPECT_FALSE(cpu::is_level_given());
  EXPECT_EQ(cpu::levels().front(), Level::portable);
}

TEST(Cpu, UnknownAndUnsupportedLevelsAreBadInput) {
  const SimdVariable variable{"mmx"};
  testing::expect_says<BadInput>([&] { static_cast<void>(cpu::level()); }, "ONEHOP_SIMD: expected one of portable",
                                 "found 'mmx'");
  EXPECT_THROW(static_cast<void>(cpu::level()), BadInput);  // and again
  EXPECT_EQ(cpu::level_or_best(), cpu::levels().back());
  EXPECT_THROW(static_cast<void>(Group::alone()), BadInput);
  EXPECT_THROW(static_cast<void>(quantum::kernels<float>()), BadInput);
  EXPECT_THROW(cpu::use_level("AVX2"), BadInput);
}

TEST(Cpu, KernelsObeyTheLevel) {
  std::vector<detail::StoreFunction> stores;
  for_each_level([&](Level level) {
    const std::string name(to_string(level));
    const bool wide = level == Level::avx512;
    EXPECT_EQ(detail::available_codecs().front()->name, name);
    EXPECT_EQ(detail::exchange_level(), wide ? Level::avx512 : Level::portable);
    EXPECT_EQ(poisson::detail::best_poisson_kernels().name, name);
    EXPECT_EQ(collectives::detail::reduce_function(ElementType::float32, collectives::ReduceOp::sum),
              collectives::detail::reduce_function(ElementType::float32, collectives::ReduceOp::sum,
                                                   static_cast<int>(level)));
    EXPECT_EQ(&quantum::kernels<float>(), &quantum::kernels_named<float>(name));
    EXPECT_EQ(&quantum::kernels<double>(), &quantum::kernels_named<double>(name));
    EXPECT_EQ(quantum::kernels<float>().lane_bits, wide ? 4 : level == Level::avx2 ? 3 : 2);
    const detail::StoreFunction store = detail::store_function(StoreKind::nontemporal);
    EXPECT_EQ(std::count(stores.begin(), stores.end(), store), 0);
    stores.push_back(store);
  });
}

#if defined(__x86_64__)
TEST(Cpu, TheProcessorIsWhatTheCompilerFinds) {
  __builtin_cpu_init();
  const auto& found = cpu::levels();
  const auto has = [&](Level level) { return std::find(found.begin(), found.end(), level) != found.end(); };
  EXPECT_EQ(has(Level::avx2), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ(has(Level::avx512), __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
  EXPECT_EQ(cpu::is_amd(), __builtin_cpu_is("amd") != 0);
  EXPECT_EQ(cpu::is_intel(), __builtin_cpu_is("intel") != 0);
}

TEST(Cpu, TheFamilyIsWhatTheKernelFinds) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("cpu family")) {
  }
  if (!file) GTEST_SKIP() << "/proc/cpuinfo has no family";
  EXPECT_EQ(cpu::family(), std::stoi(line.substr(line.find(':') + 1)));
}
#endif

struct Nothing {
  static void run(const int&) {}
};

TEST(Cpu, LatticeKernelsObeyTheLevel) {
  using lattice::detail::best_loop;
  for_each_level([](Level level) {
    switch (level) {
      case Level::portable:
        EXPECT_EQ(&lattice::detail::su3_kernels<float>(), &lattice::portable::float_su3());
        EXPECT_EQ(lattice::detail::wilson_kernels<double>(2), lattice::portable::double_wilson(2));
        EXPECT_EQ((best_loop<Nothing, int>()), (&lattice::detail::portable_loop<Nothing, int>));
        break;
#if defined(__x86_64__)
      case Level::avx2:
        EXPECT_EQ(&lattice::detail::su3_kernels<float>(), &lattice::avx2::float_su3());
        EXPECT_EQ(lattice::detail::wilson_kernels<double>(4), lattice::avx2::double_wilson(4));
        EXPECT_EQ((best_loop<Nothing, int>()), (&lattice::detail::avx2_loop<Nothing, int>));
        break;
      case Level::avx512:
        EXPECT_EQ(&lattice::detail::su3_kernels<float>(), &lattice::avx512::float_su3());
        EXPECT_EQ(lattice::detail::wilson_kernels<double>(8), lattice::avx512::double_wilson(8));
        EXPECT_EQ((best_loop<Nothing, int>()), (&lattice::detail::avx512_loop<Nothing, int>));
        break;
#endif
      default:
        FAIL() << to_string(level);
    }
    EXPECT_EQ(lattice::detail::wilson_lanes<double>(), level == Level::avx512 ? 8 : level == Level::avx2 ? 4 : 2);
  });
}

}  // namespace
}  // namespace onehop
