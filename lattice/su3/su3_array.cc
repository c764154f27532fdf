#include "onehop/lattice/su3_array.h"

#include <algorithm>
#include <string>

#include "lattice/su3/su3_kernels.h"
#include "onehop/error.h"
#include "src/base/cpu.h"
#include "src/base/text.h"

namespace onehop::lattice {

namespace detail {

template <class T>
const Su3Kernels<T>& su3_kernels() {
  const auto pick = [](const Su3Kernels<float>* of_float, const Su3Kernels<double>* of_double) -> const Su3Kernels<T>& {
    if constexpr (sizeof(T) == sizeof(float)) {
      return *of_float;
    } else {
      return *of_double;
    }
  };
#if defined(__x86_64__)
  const cpu::Level target = cpu::level();
  if (target == cpu::Level::avx512) return pick(&avx512::float_su3(), &avx512::double_su3());
  if (target == cpu::Level::avx2) return pick(&avx2::float_su3(), &avx2::double_su3());
#endif
  return pick(&portable::float_su3(), &portable::double_su3());
}

template const Su3Kernels<float>& su3_kernels<float>();
template const Su3Kernels<double>& su3_kernels<double>();

}  // namespace detail

namespace su3 {

namespace {

using detail::su3_kernels;

// The number of groups in an array with `numbers` complex numbers per site. Throws BadInput if there is an incomplete
// group.
template <class T>
std::int64_t groups_of(std::span<const T> array, std::size_t numbers) {
  const std::size_t length = 2 * numbers * array_lanes<T>;
  if (array.size() % length != 0) {
    throw BadInput("su3 array: expected whole groups of " + base::counted(array_lanes<T>, "site") + ", " +
                   base::counted(length, "number") + " each, found " + base::counted(array.size(), "number"));
  }
  return static_cast<std::int64_t>(array.size() / length);
}

void check_equal(std::int64_t expected, std::int64_t found, const char* items) {
  if (expected == found) return;
  throw BadInput("su3 array: expected " + std::to_string(expected) + " " + items + ", found " + std::to_string(found));
}

std::size_t index(Form form) { return form == Form::adjoint ? 1 : 0; }

}  // namespace

template <class T>
void add_products(std::span<const T> m, std::span<const T> v, std::span<T> r, Form form) {
  const std::int64_t groups = groups_of(m, 9);
  check_equal(groups, groups_of(v, 3), "groups of vectors");
  check_equal(groups, groups_of<T>(r, 3), "groups of results");
  su3_kernels<T>().add_products[index(form)](m.data(), v.data(), nullptr, r.data(), groups);
}

template <class T>
void add_products(std::span<const T> m, std::span<const T> v, std::span<const std::int32_t> from, std::span<T> r,
                  Form form) {
  const std::int64_t groups = groups_of(m, 9);
  const std::int64_t vectors = groups_of(v, 3);
  check_equal(groups, static_cast<std::int64_t>(from.size()), "group numbers (from)");
  check_equal(groups, groups_of<T>(r, 3), "groups of results");
  for (const std::int32_t each : from) {
    if (each < 0 || each >= vectors) {
      throw BadInput("su3 array: expected group numbers from 0 to " + std::to_string(vectors - 1) + ", found " +
                     std::to_string(each));
    }
  }
  su3_kernels<T>().add_products[index(form)](m.data(), v.data(), from.data(), r.data(), groups);
}

template <class T>
void products(std::span<const T> a, std::span<const T> b, std::span<T> r, Form of_a, Form of_b) {
  const std::int64_t groups = groups_of(a, 9);
  check_equal(groups, groups_of(b, 9), "groups of matrices");
  check_equal(groups, groups_of<T>(r, 9), "groups of results");
  su3_kernels<T>().products[index(of_a)][index(of_b)](a.data(), b.data(), r.data(), groups);
}

template <class T>
void exponentials(std::span<const T> a, std::span<T> r) {
  const std::int64_t groups = groups_of(a, 9);
  check_equal(groups, groups_of<T>(r, 9), "groups of results");
  su3_kernels<T>().exponentials(a.data(), r.data(), groups);
}

template <class T>
void reunitarise(std::span<T> a) {
  su3_kernels<T>().reunitarise(a.data(), a.data(), groups_of<T>(a, 9));
}

template <class T>
void compress(std::span<const T> matrices, std::span<T> recon12) {
  const std::int64_t groups = groups_of(matrices, 9);
  check_equal(groups, groups_of<T>(recon12, 6), "groups of results");
  su3_kernels<T>().compress(matrices.data(), recon12.data(), groups);
}

template <class T>
void expand(std::span<const T> recon12, std::span<T> matrices) {
  const std::int64_t groups = groups_of(recon12, 6);
  check_equal(groups, groups_of<T>(matrices, 9), "groups of results");
  su3_kernels<T>().expand(recon12.data(), matrices.data(), groups);
}

template <class T>
void to_aosoa(std::span<const std::complex<double>> sites, std::size_t numbers, std::span<T> groups) {
  constexpr std::size_t lanes = array_lanes<T>;
  check_equal(static_cast<std::int64_t>(sites.size()),
              groups_of<T>(groups, numbers) * static_cast<std::int64_t>(lanes * numbers),
              "complex numbers in the groups");
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const std::size_t site = i / numbers;
    T* to = groups.data() + (site / lanes * numbers + i % numbers) * 2 * lanes + site % lanes;
    to[0] = static_cast<T>(sites[i].real());
    to[lanes] = static_cast<T>(sites[i].imag());
  }
}

template <class T>
void from_aosoa(std::span<const T> groups, std::size_t numbers, std::span<std::complex<double>> sites) {
  constexpr std::size_t lanes = array_lanes<T>;
  check_equal(static_cast<std::int64_t>(sites.size()),
              groups_of(groups, numbers) * static_cast<std::int64_t>(lanes * numbers), "complex numbers in the groups");
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const std::size_t site = i / numbers;
    const T* from = groups.data() + (site / lanes * numbers + i % numbers) * 2 * lanes + site % lanes;
    sites[i] = {static_cast<double>(from[0]), static_cast<double>(from[lanes])};
  }
}

template <class T>
void arithmetic_alone(std::int64_t groups) {
  su3_kernels<T>().arithmetic(groups);
}

template <class T>
void movement_alone(std::span<const T> m, std::span<const T> v, std::span<T> r) {
  const std::int64_t groups = groups_of(m, 9);
  check_equal(groups, groups_of(v, 3), "groups of vectors");
  check_equal(groups, groups_of<T>(r, 3), "groups of results");
  su3_kernels<T>().movement(m.data(), v.data(), nullptr, r.data(), groups);
}

std::vector<std::string> array_targets() {
  std::vector<std::string> names;
  for (const cpu::Level each : cpu::levels()) names.emplace_back(to_string(each));
  return names;
}

void use_array_target(const std::string& name) { cpu::use_level(name); }

#define ONEHOP_SU3_ARRAY(T)                                                                                          \
  template void add_products<T>(std::span<const T>, std::span<const T>, std::span<T>, Form);                         \
  template void add_products<T>(std::span<const T>, std::span<const T>, std::span<const std::int32_t>, std::span<T>, \
                                Form);                                                                               \
  template void products<T>(std::span<const T>, std::span<const T>, std::span<T>, Form, Form);                       \
  template void exponentials<T>(std::span<const T>, std::span<T>);                                                   \
  template void reunitarise<T>(std::span<T>);                                                                        \
  template void compress<T>(std::span<const T>, std::span<T>);                                                       \
  template void expand<T>(std::span<const T>, std::span<T>);                                                         \
  template void to_aosoa<T>(std::span<const std::complex<double>>, std::size_t, std::span<T>);                       \
  template void from_aosoa<T>(std::span<const T>, std::size_t, std::span<std::complex<double>>);                     \
  template void arithmetic_alone<T>(std::int64_t);                                                                   \
  template void movement_alone<T>(std::span<const T>, std::span<const T>, std::span<T>);
ONEHOP_SU3_ARRAY(float)
ONEHOP_SU3_ARRAY(double)
#undef ONEHOP_SU3_ARRAY

}  // namespace su3

}  // namespace onehop::lattice
