// The algebra of SU(3) for arrays of sites: vectors of the processor hold one number of several sites each, and which instructions there
// are is found out when the program runs. Arrays lie in groups of array_lanes<T> sites: [group][number][re, im][lane], where a
// matrix has 9 complex numbers (row by row), one in two rows 6, and a colour vector 3. Arrays that are written may not overlap others,
// unless said; lengths must be those of whole groups, and agree: BadInput otherwise.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace onehop::lattice::su3 {

// Sites in a group: 8 in double precision, 16 in single precision.
template <class T>
inline constexpr std::size_t array_lanes = 64 / sizeof(T);

// A matrix as it is, or its adjoint.
enum class Form : std::uint8_t { plain, adjoint };

// r[i] += M[i] * v[i], or with the adjoint of M[i].
template <class T>
void add_products(std::span<const T> m, std::span<const T> v, std::span<T> r, Form form = Form::plain);
// The same with vectors from elsewhere: group g takes those of group from[g]. `from` has a number a group of M, each below v's groups.
template <class T>
void add_products(std::span<const T> m, std::span<const T> v, std::span<const std::int32_t> from, std::span<T> r,
                  Form form = Form::plain);

// r[i] = a[i] * b[i], each as it is or adjoint.
template <class T>
void products(std::span<const T> a, std::span<const T> b, std::span<T> r, Form of_a = Form::plain,
              Form of_b = Form::plain);

// r[i] = exp(a[i]), to rounding, of any matrices; r may be a.
template <class T>
void exponentials(std::span<const T> a, std::span<T> r);

// The matrix of SU(3) beside each that is nearly one, see su3::reunitarise.
template <class T>
void reunitarise(std::span<T> a);

// Two rows of each matrix, 12 real numbers, and the matrices of SU(3) that they stand for.
template <class T>
void compress(std::span<const T> matrices, std::span<T> recon12);
template <class T>
void expand(std::span<const T> recon12, std::span<T> matrices);

// From one site after the other, `numbers` complex numbers each, and back.
template <class T>
void to_aosoa(std::span<const std::complex<double>> sites, std::size_t numbers, std::span<T> groups);
template <class T>
void from_aosoa(std::span<const T> groups, std::size_t numbers, std::span<std::complex<double>> sites);

// For benchmarks: as many multiply-adds as add_products makes for so many groups, on numbers in registers; and its loads and stores, with
// nothing but sums between them.
template <class T>
void arithmetic_alone(std::int64_t groups);
template <class T>
void movement_alone(std::span<const T> m, std::span<const T> v, std::span<T> r);

// The kinds of processors that this one can be ("portable", "avx2", "avx512"), the best last. The environment's ONEHOP_SIMD names another
// than the best; `use_array_target` does so for this process from now on ("" is the choice by itself). Throws BadInput for others.
[[nodiscard]] std::vector<std::string> array_targets();
void use_array_target(const std::string& name);

}  // namespace onehop::lattice::su3
