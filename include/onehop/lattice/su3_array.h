// SU(3) linear algebra on arrays of sites, in single or double precision, with the best SIMD instructions of the
// processor. Arrays are packed in groups of array_lanes<T> sites (AoSoA): [group][number][re, im][lane]. A matrix has 9
// complex numbers (row by row), a matrix of two rows 6, and a colour vector 3. Output arrays must not overlap others
// unless stated. All functions throw BadInput unless lengths are those of whole groups and agree.
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
// The same with gathered vectors: group g of M takes the vectors of group from[g]. Throws BadInput for an entry of
// `from` outside v's groups.
template <class T>
void add_products(std::span<const T> m, std::span<const T> v, std::span<const std::int32_t> from, std::span<T> r,
                  Form form = Form::plain);

// r[i] = a[i] * b[i], or with the adjoint of either.
template <class T>
void products(std::span<const T> a, std::span<const T> b, std::span<T> r, Form of_a = Form::plain,
              Form of_b = Form::plain);

// r[i] = exp(a[i]), to rounding, for any matrices; r may be a.
template <class T>
void exponentials(std::span<const T> a, std::span<T> r);

// Projects matrices close to SU(3) to SU(3), see su3::reunitarise.
template <class T>
void reunitarise(std::span<T> a);

// compress() keeps two rows of each matrix, 12 real numbers; expand() reconstructs the SU(3) matrices from them.
template <class T>
void compress(std::span<const T> matrices, std::span<T> recon12);
template <class T>
void expand(std::span<const T> recon12, std::span<T> matrices);

// Convert from sites one after the other, with `numbers` complex numbers each, to the layout above, and back.
template <class T>
void to_aosoa(std::span<const std::complex<double>> sites, std::size_t numbers, std::span<T> groups);
template <class T>
void from_aosoa(std::span<const T> groups, std::size_t numbers, std::span<std::complex<double>> sites);

// Speed-of-light measurements for benchmarks: the multiply-adds of add_products for this many groups, on registers
// only; and its loads and stores, with only additions between them.
template <class T>
void arithmetic_alone(std::int64_t groups);
template <class T>
void movement_alone(std::span<const T> m, std::span<const T> v, std::span<T> r);

// array_targets() returns the instruction sets that this processor supports ("portable", "avx2", "avx512"), the best
// last. By default the best one is used, or the one that ONEHOP_SIMD names. use_array_target() selects another for this
// process, "" the default; throws BadInput.
[[nodiscard]] std::vector<std::string> array_targets();
void use_array_target(const std::string& name);

}  // namespace onehop::lattice::su3
