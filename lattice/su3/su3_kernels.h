// The loops of su3_array.h, one set per instruction set. Sources that are compiled for one instruction set include this
// header, so it only declares.
#pragma once

#include <cstdint>

namespace onehop::lattice {

template <class T>
struct Su3Kernels {
  // `from` may be null. A group has 64 / sizeof(T) sites.
  using AddProducts = void (*)(const T* m, const T* v, const std::int32_t* from, T* r, std::int64_t groups);
  using Products = void (*)(const T* a, const T* b, T* r, std::int64_t groups);
  using Map = void (*)(const T* a, T* r, std::int64_t groups);
  AddProducts add_products[2];  // by the form of the matrices
  Products products[2][2];      // by the form of a, of b
  Map exponentials;
  Map reunitarise;
  Map compress;
  Map expand;
  // For benchmarks: see arithmetic_alone() and movement_alone() in su3_array.h.
  void (*arithmetic)(std::int64_t groups);
  AddProducts movement;
};

namespace portable {
[[nodiscard]] const Su3Kernels<float>& float_su3();
[[nodiscard]] const Su3Kernels<double>& double_su3();
}  // namespace portable
#if defined(__x86_64__)
namespace avx2 {
[[nodiscard]] const Su3Kernels<float>& float_su3();
[[nodiscard]] const Su3Kernels<double>& double_su3();
}  // namespace avx2
namespace avx512 {
[[nodiscard]] const Su3Kernels<float>& float_su3();
[[nodiscard]] const Su3Kernels<double>& double_su3();
}  // namespace avx512
#endif

namespace detail {
// Returns the kernels for cpu::level().
template <class T>
[[nodiscard]] const Su3Kernels<T>& su3_kernels();
}  // namespace detail

}  // namespace onehop::lattice
