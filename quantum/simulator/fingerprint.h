// A hash of 128 bits. Collisions between different contents are rarer than memory errors.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "onehop/quantum/program.h"

namespace onehop::quantum {

using Key = std::array<std::uint64_t, 2>;

class Fingerprint {
 public:
  void add(std::uint64_t word) {
    key_[0] = folded(key_[0] ^ word, 0x9E3779B97F4A7C15U);
    key_[1] = folded(key_[1] + word, 0xD1B54A32D192ED03U) + word;
  }
  void add(double number) { add(std::bit_cast<std::uint64_t>(number)); }
  void add(Complex number) {
    add(number.real());
    add(number.imag());
  }
  void add(int number) { add(static_cast<std::uint64_t>(number)); }
  void add(std::int64_t number) { add(static_cast<std::uint64_t>(number)); }
  template <typename T>
  void add(const std::vector<T>& items) {
    for (const T& item : items) add(item);
  }
  // With their number.
  template <typename T>
  void add_all(const T& items) {
    add(static_cast<std::uint64_t>(std::size(items)));
    for (const auto& item : items) add(item);
  }
  void add(const Operation& operation);
  void add(const Circuit& circuit) {
    for (const int number : {circuit.qubits, circuit.clbits, circuit.hidden_clbits}) add(number);
    add_all(circuit.operations);
  }
  void add(const Channel& channel) {
    add(static_cast<std::uint64_t>(channel.operators.size()));
    for (const auto& matrix : channel.operators) add_all(matrix);
  }
  void add(const PauliSum& sum);
  void add(const Save& save);
  void add(const Misread& misread) {
    add(misread.first);
    add(misread.second);
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

// The hash of these contents.
template <typename... T>
[[nodiscard]] Key hash_of(const T&... contents) {
  Fingerprint print;
  (print.add_all(contents), ...);
  return print.key();
}

// Contents that all ranks must have, and their name.
struct Shared {
  const char* name;
  Key hash;
};

// Throws Mismatch on every rank unless all of them have the same contents: the result would be a mixture. One
// all-gather.
void require_same(const Group& group, std::span<const Shared> contents);

}  // namespace onehop::quantum
