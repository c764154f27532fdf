#include "quantum/simulator/record_seed.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

namespace onehop::quantum {
namespace {

constexpr std::array<std::uint64_t, 8> initial = {0x6A09E667F3BCC908U, 0xBB67AE8584CAA73BU, 0x3C6EF372FE94F82BU,
                                                  0xA54FF53A5F1D36F1U, 0x510E527FADE682D1U, 0x9B05688C2B3E6C1FU,
                                                  0x1F83D9ABFB41BD6BU, 0x5BE0CD19137E2179U};
constexpr std::size_t block = 128;

// The order of the words of a message in each round (RFC 7693, section 2.7); rounds 10 and 11 repeat the first two.
constexpr std::array<std::array<std::uint8_t, 16>, 10> orders = {{
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
}};

using Words = std::array<std::uint64_t, 16>;

void mix(Words& v, std::size_t column, std::size_t shift, std::uint64_t x, std::uint64_t y) {
  const auto row = [&](std::size_t r) -> std::uint64_t& { return v[4 * r + (column + r * shift) % 4]; };
  row(0) += row(1) + x;
  row(3) = std::rotr(row(3) ^ row(0), 32);
  row(2) += row(3);
  row(1) = std::rotr(row(1) ^ row(2), 24);
  row(0) += row(1) + y;
  row(3) = std::rotr(row(3) ^ row(0), 16);
  row(2) += row(3);
  row(1) = std::rotr(row(1) ^ row(2), 63);
}

void compress(std::array<std::uint64_t, 8>& hash, const Words& message, std::uint64_t bytes, bool last) {
  Words v;
  std::copy(hash.begin(), hash.end(), v.begin());
  std::copy(initial.begin(), initial.end(), v.begin() + 8);
  v[12] ^= bytes;
  if (last) v[14] = ~v[14];
  for (std::size_t round = 0; round < 12; ++round) {
    const auto& order = orders[round % orders.size()];
    for (std::size_t i = 0; i < 8; ++i) mix(v, i % 4, i / 4, message[order[2 * i]], message[order[2 * i + 1]]);
  }
  for (std::size_t i = 0; i < hash.size(); ++i) hash[i] ^= v[i] ^ v[i + 8];
}

// The first word of a BLAKE2b digest of 8 bytes.
std::uint64_t blake2b(const std::string& text) {
  std::array<std::uint64_t, 8> hash = initial;
  hash[0] ^= 0x01010000U ^ sizeof(std::uint64_t);
  std::size_t done = 0;
  do {
    const std::size_t count = std::min(block, text.size() - done);
    Words message{};
    for (std::size_t i = 0; i < count; ++i) {
      message[i / 8] |= std::uint64_t{static_cast<unsigned char>(text[done + i])} << 8 * (i % 8);
    }
    done += count;
    compress(hash, message, done, done == text.size());
  } while (done < text.size());
  return hash[0];
}

}  // namespace

std::uint64_t record_seed(std::uint64_t seed, std::span<const int> record) {
  std::string text = "(" + std::to_string(seed) + ", (";
  for (std::size_t i = 0; i < record.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(record[i]);
  text += record.size() == 1 ? ",))" : "))";
  return blake2b(text) >> 1;
}

}  // namespace onehop::quantum
