// A hash of 128 bits. Collisions between different contents are rarer than memory errors.
#pragma once

#include <array>
#include <bit>
#include <complex>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <type_traits>
#include <utility>

namespace onehop::base {

using Key = std::array<std::uint64_t, 2>;

// Further types are added by a function add_to(Fingerprint&, const T&) in their namespace.
class Fingerprint {
 public:
  void add(std::uint64_t word) {
    key_[0] = folded(key_[0] ^ word, 0x9E3779B97F4A7C15U);
    key_[1] = folded(key_[1] + word, 0xD1B54A32D192ED03U) + word;
  }
  void add(double number) { add(std::bit_cast<std::uint64_t>(number)); }
  void add(std::complex<double> number) {
    add(number.real());
    add(number.imag());
  }
  template <typename A, typename B>
  void add(const std::pair<A, B>& both) {
    add(both.first);
    add(both.second);
  }
  template <typename T>
  void add(const T& value) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      add(static_cast<std::uint64_t>(value));
    } else if constexpr (std::ranges::range<T>) {
      for (const auto& item : value) add(item);
    } else {
      add_to(*this, value);
    }
  }
  // With their number.
  template <typename T>
  void add_all(const T& items) {
    add(static_cast<std::uint64_t>(std::size(items)));
    for (const auto& item : items) add(item);
  }
  [[nodiscard]] const Key& key() const noexcept { return key_; }

 private:
  // Both halves of the product.
  static std::uint64_t folded(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
  }

  Key key_ = {0x243F6A8885A308D3U, 0x13198A2E03707344U};
};

// The hash of these contents; of a range with the number of its items.
template <typename... T>
[[nodiscard]] Key hash_of(const T&... contents) {
  Fingerprint print;
  const auto add = [&print](const auto& value) {
    if constexpr (std::ranges::range<decltype(value)>) {
      print.add_all(value);
    } else {
      print.add(value);
    }
  };
  (add(contents), ...);
  return print.key();
}

}  // namespace onehop::base
