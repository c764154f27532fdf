// SIMD loops: one source with the compiler's vector types, compiled for each instruction set and selected at run time.
//
// A loop is a type with a static function run(const Arguments&), written only with Lanes<...> and inline functions.
// best_loop() compiles it for each instruction set and returns the one for cpu::level(). Sources that use it need
// -Wno-psabi, which is safe because vectors are passed to inlined functions only. Loops write sum += a * b and sum -= a
// * b as statements of their own: the compiler fuses each of them for every number of lanes where the processor can, so
// that all grids give the same bits.
#pragma once

#include <cstdint>
#include <cstring>

#include "src/base/cpu.h"

namespace onehop::lattice::detail {

template <class Number, int Count>
struct Pack {
  typedef Number Type __attribute__((vector_size(Count * sizeof(Number))));
};
template <class Number, int Count>
using Lanes = typename Pack<Number, Count>::Type;

template <class Number, int Count>
inline Lanes<Number, Count> load_lanes(const Number* from) {
  Lanes<Number, Count> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class Number, int Count>
inline void store_lanes(Number* to, const Lanes<Number, Count>& v) {
  std::memcpy(to, &v, sizeof v);
}
template <class To, int Count, class From>
inline Lanes<To, Count> convert_lanes(const Lanes<From, Count>& v) {
  return __builtin_convertvector(v, Lanes<To, Count>);
}

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
