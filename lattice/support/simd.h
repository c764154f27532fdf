// Loops over vectors of sites: the compiler's vector types, and one source for every kind of processor, chosen at run time.
//
// A loop is a type with a static function run(const Arguments&), written with Lanes<...> and inline functions only. best_loop compiles it
// for each instruction set and returns the one that cpu::level() says. Sources that use it need -Wno-psabi, as such vectors are
// passed to inlined functions only. Written as sum += a * b and sum -= a * b, with both factors in hand, each such step is one
// rounding wherever the processor has fused steps, whatever the number of lanes: so the same bits on every grid.
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
