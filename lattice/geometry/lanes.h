// Mathematical functions and random numbers in SIMD lanes: R is double or a vector of doubles (site_loop.h). They use
// only IEEE operations, without fused multiply-adds, and so give the same bits on every processor and in every lane; a
// mathematical library does not promise that.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "lattice/geometry/site_loop.h"

namespace onehop::lattice::detail {

template <class R>
inline constexpr int lanes_of = static_cast<int>(sizeof(R) / sizeof(double));  // NOLINT(bugprone-sizeof-expression)

// A 64-bit word per lane.
template <class R>
using Words = simd::Lanes<std::uint64_t, lanes_of<R>>;
template <class R>
using SignedWords = simd::Lanes<std::int64_t, lanes_of<R>>;
using simd::Mask;

template <class M>
inline bool any(const M& mask) {
  if constexpr (std::is_same_v<M, bool>) {
    return mask;
  } else {
    std::int64_t found = 0;
    for (std::size_t lane = 0; lane < sizeof(M) / sizeof(found); ++lane) found |= mask[lane];
    return found != 0;
  }
}

// A mask of the first `count` lanes.
template <class R>
inline Mask<R> first_lanes(int count) {
  R lane{};
  if constexpr (!std::is_same_v<R, double>) {
    for (int i = 0; i < lanes_of<R>; ++i) lane[i] = i;
  }
  return lane < R{} + count;
}

template <class R, class W>
inline R to_real(const W& words) {
  if constexpr (std::is_same_v<R, double>) {
    return static_cast<double>(words);
  } else {
    return __builtin_convertvector(words, R);
  }
}
template <class R>
inline SignedWords<R> truncated(const R& x) {
  if constexpr (std::is_same_v<R, double>) {
    return static_cast<std::int64_t>(x);
  } else {
    return __builtin_convertvector(x, SignedWords<R>);
  }
}
template <class To, class From>
inline To same_bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// The logarithm of x in [0, 2^1023], to a few units in the last place; -709 for 0. With x = 2^e m, log(m) = 2 artanh((m
// - 1) / (m + 1)), by the series with an argument below 0.172.
template <class R>
inline R logarithm(const R& x) {
  const auto bits = same_bits<Words<R>>(x);
  R exponent = to_real<R>(same_bits<SignedWords<R>>(bits >> 52) - 1023);
  R m = same_bits<R>((bits & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u);
  const Mask<R> large = m > R{} + 1.4142135623730951;
  m = large ? 0.5 * m : m;
  exponent = large ? exponent + 1 : exponent;
  const R s = (m - 1) / (m + 1);
  const R square = s * s;
  R sum{};
  for (int n = 21; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
  return exponent * 0.6931471805599453 + 2 * s * sum;
}

// The cosine and sine of 2 pi v for v in [0, 1], to a few units of 2^-53.
template <class R>
inline std::pair<R, R> cosine_and_sine_of_turns(const R& v) {
  const SignedWords<R> quarter = truncated<R>(4 * v + 0.5);
  const R angle = 6.283185307179586 * (v - 0.25 * to_real<R>(quarter));  // within pi / 4 of 0
  const R square = angle * angle;
  R cosine{}, sine{};
  for (int n = 16; n >= 2; n -= 2) {
    cosine = 1 - square * cosine * (1.0 / ((n + 1) * (n + 2)));
    sine = 1 - square * sine * (1.0 / ((n + 2) * (n + 3)));
  }
  cosine = 1 - square * cosine * 0.5;
  sine = angle * (1 - square * sine * (1.0 / 6));
  const R odd = to_real<R>(quarter & 1), two = to_real<R>(quarter & 2);
  const R sign = 1 - two;  // the second and third quarter turn
  const Mask<R> swapped = odd > R{} + 0.5;
  const R c = swapped ? -sine : cosine;
  const R s = swapped ? cosine : sine;
  return {sign * c, sign * s};
}

// The random numbers of random.h for several places at once, one place per lane.
template <class R>
class RandomLanes {
 public:
  RandomLanes(std::uint64_t seed, const Words<R>& place, std::uint32_t sweep, std::uint32_t purpose)
      : key_{seed & low, seed >> 32},
        counter_{place & low, (place >> 32) | std::uint64_t{purpose} << 16, Words<R>{} + sweep} {}

  // The `number`-th pair of random numbers in (0, 1], multiples of 2^-53, from Philox4x32-10 (src/base/philox.h).
  [[nodiscard]] std::pair<R, R> two(std::uint32_t number) const {
    Words<R> c0 = counter_[0], c1 = counter_[1], c2 = counter_[2], c3 = Words<R>{} + number;
    std::uint64_t k0 = key_[0], k1 = key_[1];
    for (int round = 0; round < 10; ++round) {
      const Words<R> a = c0 * 0xD2511F53u;
      const Words<R> b = c2 * 0xCD9E8D57u;
      c0 = (b >> 32) ^ c1 ^ k0;
      c1 = b & low;
      c2 = (a >> 32) ^ c3 ^ k1;
      c3 = a & low;
      k0 = (k0 + 0x9E3779B9u) & low;
      k1 = (k1 + 0xBB67AE85u) & low;
    }
    return {number_of((c0 << 32) | c1), number_of((c2 << 32) | c3)};
  }

 private:
  static constexpr std::uint64_t low = 0xFFFFFFFF;
  static R number_of(const Words<R>& bits) { return to_real<R>(same_bits<SignedWords<R>>((bits >> 11) + 1)) * 0x1p-53; }

  std::array<std::uint64_t, 2> key_;
  std::array<Words<R>, 3> counter_;
};

}  // namespace onehop::lattice::detail
