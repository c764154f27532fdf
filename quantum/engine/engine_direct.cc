#include "quantum/engine/engine_direct.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "quantum/engine/complex_product.h"
#include "quantum/engine/engine_diagonal.h"
#include "src/base/text.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {
namespace {

constexpr std::uint64_t grain = std::uint64_t{1} << 14;

std::uint64_t mask_of(std::span<const int> bits) {
  std::uint64_t mask = 0;
  for (const int bit : bits) mask |= std::uint64_t{1} << bit;
  return mask;
}

// Calls body(i) for every index i of an amplitude whose bits in `mask` are 0.
template <typename Body>
void for_each_outside(int threads, std::size_t size, std::uint64_t mask, const Body& body) {
  base::parallel_for(threads, size >> std::popcount(mask), grain, [&](std::uint64_t begin, std::uint64_t end) {
    std::uint64_t i = deposit_bits(begin, ~mask);
    for (std::uint64_t k = begin; k < end; ++k) {
      body(i);
      i = ((i | mask) + 1) & ~mask;
    }
  });
}

// offsets[j]: bit b of j moved to bit bits[b].
std::vector<std::uint64_t> offsets_of(std::span<const int> bits) {
  std::vector<std::uint64_t> offsets(std::size_t{1} << bits.size());
  for (std::size_t j = 0; j < offsets.size(); ++j) {
    for (std::size_t b = 0; b < bits.size(); ++b) offsets[j] |= ((j >> b) & 1) << bits[b];
  }
  return offsets;
}

template <typename T>
std::vector<std::complex<T>> converted(std::span<const std::complex<double>> values) {
  return {values.begin(), values.end()};
}

template <typename T>
void apply_matrix(std::span<std::complex<T>> amplitudes, const LocalOperation& op, int threads) {
  const auto matrix = converted<T>(op.values);
  const auto offsets = offsets_of(op.bits);
  const std::size_t size = offsets.size();
  const std::uint64_t mask = mask_of(op.bits);
  base::parallel_for(threads, amplitudes.size() >> op.bits.size(), std::max<std::uint64_t>(1, grain / size),
                     [&](std::uint64_t begin, std::uint64_t end) {
                       std::vector<std::complex<T>> old(size);
                       std::uint64_t base = deposit_bits(begin, ~mask);
                       for (std::uint64_t k = begin; k < end; ++k, base = ((base | mask) + 1) & ~mask) {
                         if ((base & op.control_mask) != op.control_values) continue;
                         for (std::size_t j = 0; j < size; ++j) old[j] = amplitudes[base + offsets[j]];
                         for (std::size_t r = 0; r < size; ++r) {
                           std::complex<T> sum = 0;
                           for (std::size_t c = 0; c < size; ++c) sum += times(matrix[r * size + c], old[c]);
                           amplitudes[base + offsets[r]] = sum;
                         }
                       }
                     });
}

template <typename T>
void apply_diagonal(std::span<std::complex<T>> amplitudes, const LocalOperation& op, int threads) {
  const auto values = converted<T>(op.values);
  for_each_outside(threads, amplitudes.size(), op.control_mask, [&](std::uint64_t rest) {
    const std::uint64_t i = rest | op.control_values;
    std::size_t j = 0;
    for (std::size_t b = 0; b < op.bits.size(); ++b) j |= ((i >> op.bits[b]) & 1) << b;
    amplitudes[i] = times(values[j], amplitudes[i]);
  });
}

template <typename T>
void apply_swap(std::span<std::complex<T>> amplitudes, const LocalOperation& op, int threads) {
  const std::uint64_t a = std::uint64_t{1} << op.bits[0];
  const std::uint64_t b = std::uint64_t{1} << op.bits[1];
  for_each_outside(threads, amplitudes.size(), op.control_mask | a | b, [&](std::uint64_t rest) {
    std::swap(amplitudes[rest | op.control_values | a], amplitudes[rest | op.control_values | b]);
  });
}

template <typename T>
void apply_pauli_rotation(std::span<std::complex<T>> amplitudes, const LocalOperation& op, int threads) {
  const std::complex<T> cosine(static_cast<T>(std::cos(op.angle / 2)));
  // The factor from an amplitude to its partner, -i sin(angle/2) i^(number of Y), up to the sign of the Z part.
  constexpr std::complex<double> powers[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  const std::complex<T> sent(std::complex<double>(0, -std::sin(op.angle / 2)) *
                             powers[std::popcount(op.x_mask & op.z_mask) % 4]);
  const auto sign = [&](std::uint64_t i) { return static_cast<T>(std::popcount(i & op.z_mask) % 2 == 0 ? 1 : -1); };
  if (op.x_mask == 0) {
    for_each_outside(threads, amplitudes.size(), op.control_mask, [&](std::uint64_t rest) {
      const std::uint64_t i = rest | op.control_values;
      amplitudes[i] = times(cosine + sign(i) * sent, amplitudes[i]);
    });
    return;
  }
  const std::uint64_t top = std::bit_floor(op.x_mask);
  for_each_outside(threads, amplitudes.size(), op.control_mask | top, [&](std::uint64_t rest) {
    const std::uint64_t i = rest | op.control_values;
    const std::uint64_t j = i ^ op.x_mask;
    const std::complex<T> a = amplitudes[i];
    const std::complex<T> b = amplitudes[j];
    amplitudes[i] = times(cosine, a) + times(sign(j) * sent, b);
    amplitudes[j] = times(cosine, b) + times(sign(i) * sent, a);
  });
}

[[noreturn]] void bad(std::size_t index, const std::string& message) {
  throw BadInput("local operation " + std::to_string(index) + ": " + message);
}

std::size_t numbers_of(const LocalOperation& op) {
  switch (op.kind) {
    case LocalKind::matrix:
      return std::size_t{1} << (2 * op.bits.size());
    case LocalKind::diagonal:
      return std::size_t{1} << op.bits.size();
    default:
      return 0;
  }
}

}  // namespace

void check_operation(const LocalOperation& op, std::size_t index, int bits) {
  const std::uint64_t all = bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  std::uint64_t used = 0;
  for (const int bit : op.bits) {
    if (bit < 0 || bit >= bits) {
      bad(index, "bit " + std::to_string(bit) + " does not exist; the amplitudes have " + base::counted(bits, "bit"));
    }
    if ((used >> bit & 1) != 0) bad(index, "bit " + std::to_string(bit) + " is named twice");
    used |= std::uint64_t{1} << bit;
  }
  used |= op.x_mask | op.z_mask;
  if (((used | op.control_mask) & ~all) != 0) {
    bad(index, "expected masks within the " + base::counted(bits, "bit") + " of the amplitudes, found higher bits");
  }
  if ((used & op.control_mask) != 0) bad(index, "expected controls and targets on different bits, found a common bit");
  if ((op.control_values & ~op.control_mask) != 0) bad(index, "expected control_values within control_mask");
  const bool rotation = op.kind == LocalKind::pauli_rotation;
  if (rotation ? !op.bits.empty() : (op.x_mask | op.z_mask) != 0) {
    bad(index, "expected only x_mask and z_mask for a Pauli rotation, and only bits for any other kind");
  }
  if (op.kind == LocalKind::matrix && op.bits.empty()) bad(index, "expected a matrix on 1 bit or more, found none");
  if (op.kind == LocalKind::swap && op.bits.size() != 2) {
    bad(index, "expected a swap of 2 bits, found " + std::to_string(op.bits.size()));
  }
  if (op.values.size() != numbers_of(op)) {
    bad(index, "expected " + base::counted(numbers_of(op), "value") + ", found " + std::to_string(op.values.size()));
  }
}

template <typename T>
void apply_directly(std::span<std::complex<T>> amplitudes, const LocalOperation& op, int threads) {
  switch (op.kind) {
    case LocalKind::matrix:
      return apply_matrix(amplitudes, op, threads);
    case LocalKind::diagonal:
      return apply_diagonal(amplitudes, op, threads);
    case LocalKind::swap:
      return apply_swap(amplitudes, op, threads);
    case LocalKind::pauli_rotation:
      return apply_pauli_rotation(amplitudes, op, threads);
  }
}

template void apply_directly<float>(std::span<std::complex<float>>, const LocalOperation&, int);
template void apply_directly<double>(std::span<std::complex<double>>, const LocalOperation&, int);

}  // namespace onehop::quantum
