// Loops over SIMD vectors (src/base/simd.h): one source, compiled for each instruction set and selected at run time.
//
// A loop is a type with a static function run(const Arguments&), written only with vectors and inline functions.
// best_loop() compiles it for each instruction set and returns the one for cpu::level(). Sources that use it need
// -Wno-psabi. Loops write sum += a * b and sum -= a * b as statements of their own: the compiler fuses each of them for
// every number of lanes where the processor can, so that all grids give the same bits.
#pragma once

#include "src/base/cpu.h"
#include "src/base/simd.h"

namespace onehop::lattice::detail {

template <class Loop, class Arguments>
[[gnu::flatten]] void portable_loop(const Arguments& arguments) {
  Loop::run(arguments);
}
#if defined(__x86_64__)
template <class Loop, class Arguments>
[[gnu::flatten, gnu::target("avx2,fma")]] void avx2_loop(const Arguments& arguments) {
  Loop::run(arguments);
}
template <class Loop, class Arguments>
[[gnu::flatten, gnu::target("avx512f,avx512dq,avx512vl,avx512bw,fma")]] void avx512_loop(const Arguments& arguments) {
  Loop::run(arguments);
}
#endif

template <class Arguments>
using LoopFunction = void (*)(const Arguments&);

template <class Loop, class Arguments>
LoopFunction<Arguments> best_loop() {
#if defined(__x86_64__)
  if (cpu::level() == cpu::Level::avx512) return &avx512_loop<Loop, Arguments>;
  if (cpu::level() != cpu::Level::portable) return &avx2_loop<Loop, Arguments>;
#endif
  return &portable_loop<Loop, Arguments>;
}

}  // namespace onehop::lattice::detail
