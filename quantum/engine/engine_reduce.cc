// The engine's reductions. Each sums blocks of a fixed size, and then the blocks in order, so that the result does not
// depend on the number of threads.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "onehop/quantum/engine.h"
#include "quantum/engine/complex_product.h"
#include "quantum/kernels/kernels.h"
#include "src/base/text.h"
#include "src/base/thread_count.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {
namespace {

using Sum = std::complex<double>;

constexpr std::uint64_t block_size = std::uint64_t{1} << 13;
constexpr std::uint64_t max_parts = 256;

// The limit on partial sums for all threads together: a small fraction of the amplitudes (half a percent in double
// precision). For many values the amplitudes are therefore split into fewer parts.
std::uint64_t max_partial_numbers(std::uint64_t amplitudes) {
  return std::clamp<std::uint64_t>(amplitudes / 128, std::uint64_t{1} << 16, std::uint64_t{1} << 22);
}

std::uint64_t blocks_in(std::uint64_t count) { return (count + block_size - 1) / block_size; }

template <typename T>
double probability(std::complex<T> a) {
  const double re = a.real();
  const double im = a.imag();
  return re * re + im * im;
}

// Eight independent sums, one per vector lane, so that the compiler may vectorise without reordering additions.
template <typename T>
double block_norm(const std::complex<T>* a, std::uint64_t count) {
  const T* numbers = reinterpret_cast<const T*>(a);
  double sums[8] = {};
  std::uint64_t i = 0;
  for (; i + 8 <= 2 * count; i += 8) {
    for (std::uint64_t lane = 0; lane < 8; ++lane) {
      const double x = numbers[i + lane];
      sums[lane] += x * x;
    }
  }
  for (; i < 2 * count; ++i) {
    const double x = numbers[i];
    sums[0] += x * x;
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

template <typename T>
std::vector<double> block_norms(std::span<const std::complex<T>> amplitudes, int threads) {
  std::vector<double> norms(blocks_in(amplitudes.size()));
  base::parallel_for(threads, amplitudes.size(), block_size, [&](std::uint64_t begin, std::uint64_t end) {
    norms[begin / block_size] = block_norm(amplitudes.data() + begin, end - begin);
  });
  return norms;
}

void check_bit(int bit, std::size_t size) {
  if (bit < 0 || bit >= 64 || (size >> bit) < 2) {
    throw BadInput("bit " + std::to_string(bit) + " does not exist in " + base::counted(size, "amplitude"));
  }
}

void check_sizes(std::size_t expected, std::size_t found, const char* array) {
  if (expected != found) {
    throw BadInput(std::string(array) + ": expected " + base::counted(expected, "number") + ", found " +
                   std::to_string(found));
  }
}

// The Pauli strings that share an x_mask. They need the same products of amplitudes, with different signs.
struct SharedX {
  std::uint64_t x_mask = 0;
  std::vector<std::size_t> members;
};

std::vector<SharedX> shared_x(std::span<const LocalPauli> paulis) {
  std::map<std::uint64_t, std::size_t> place;
  std::vector<SharedX> groups;
  for (std::size_t i = 0; i < paulis.size(); ++i) {
    const auto [it, fresh] = place.try_emplace(paulis[i].x_mask, groups.size());
    if (fresh) groups.push_back({.x_mask = paulis[i].x_mask, .members = {}});
    groups[it->second].members.push_back(i);
  }
  return groups;
}

// Sums of products of one block with its partner, for all Pauli strings of a group. For many strings a Walsh transform,
// which gives the sums for all z_masks, is cheaper than separate sums.
template <typename T>
class BlockProducts {
 public:
  BlockProducts(std::span<const std::complex<T>> a, std::span<const std::complex<T>> b,
                std::span<const LocalPauli> paulis, std::uint64_t size)
      : a_(a), b_(b), paulis_(paulis), size_(size), kernels_(kernels<T>()) {}

  // Adds the sums over the block of b that starts at `begin` to `out`.
  void add(const SharedX& group, std::uint64_t begin, std::span<Sum> out) {
    constexpr std::size_t many = 24;
    // If a and b are the same state, a block and its partner give conjugate products: one of the two serves for both.
    const std::uint64_t far = group.x_mask & ~(size_ - 1);
    const bool twice = a_.data() == b_.data() && far != 0;
    if (twice && (begin & std::bit_floor(far)) != 0) return;
    const bool transform = group.members.size() >= many || size_ < 8;
    if (transform) fill(group.x_mask, begin);
    for (const std::size_t member : group.members) {
      const std::uint64_t z = paulis_[member].z_mask;
      Sum sum = transform ? Sum(re_[z & (size_ - 1)], im_[z & (size_ - 1)])
                          : kernels_.signed_product(a_.data() + (begin ^ far), b_.data() + begin, size_,
                                                    group.x_mask & (size_ - 1), z & (size_ - 1));
      if (std::popcount(begin & z) % 2 != 0) sum = -sum;
      out[member] += sum;
      if (twice) out[member] += std::popcount(group.x_mask & z) % 2 == 0 ? std::conj(sum) : -std::conj(sum);
    }
  }

 private:
  void fill(std::uint64_t x_mask, std::uint64_t begin) {
    re_.resize(size_);
    im_.resize(size_);
    for (std::uint64_t j = 0; j < size_; ++j) {
      const std::complex<T> left = a_[(begin + j) ^ x_mask];
      const std::complex<T> right = b_[begin + j];
      const double left_re = left.real();
      const double left_im = left.imag();
      re_[j] = left_re * right.real() + left_im * right.imag();
      im_[j] = left_re * right.imag() - left_im * right.real();
    }
    walsh_transform(re_);
    walsh_transform(im_);
  }

  std::span<const std::complex<T>> a_;
  std::span<const std::complex<T>> b_;
  std::span<const LocalPauli> paulis_;
  std::uint64_t size_;
  const Kernels<T>& kernels_;
  std::vector<double> re_, im_;
};

}  // namespace

template <typename T>
double norm_squared(std::span<const std::complex<T>> amplitudes, const EngineOptions& options) {
  double sum = 0;
  for (const double norm : block_norms(amplitudes, base::thread_count(options.threads))) sum += norm;
  return sum;
}

template <typename T>
void probabilities(std::span<const std::complex<T>> amplitudes, std::span<const int> bits, std::span<double> out,
                   const EngineOptions& options) {
  if (bits.size() > 24) {
    throw BadInput("probabilities: expected at most 24 bits, found " + std::to_string(bits.size()));
  }
  std::uint64_t named = 0;
  for (const int bit : bits) {
    check_bit(bit, amplitudes.size());
    if ((named >> bit & 1) != 0) throw BadInput("bit " + std::to_string(bit) + " is named twice");
    named |= std::uint64_t{1} << bit;
  }
  check_sizes(std::size_t{1} << bits.size(), out.size(), "probabilities");
  std::fill(out.begin(), out.end(), 0.0);
  const auto value_of = [&](std::uint64_t i) {
    std::size_t value = 0;
    for (std::size_t b = 0; b < bits.size(); ++b) value |= ((i >> bits[b]) & 1) << b;
    return value;
  };
  // Work in pieces of 64 aligned amplitudes, within which all higher bits are constant.
  std::uint8_t low_value_bits = 0;
  for (const int bit : bits) low_value_bits += bit < 6;
  std::vector<std::size_t> low_values(64);
  for (std::uint64_t i = 0; i < 64; ++i) low_values[i] = value_of(i);
  const std::uint64_t parts = std::clamp<std::uint64_t>(
      std::min(blocks_in(amplitudes.size()), max_partial_numbers(amplitudes.size()) / out.size()), 1, max_parts);
  const std::uint64_t part = std::max<std::uint64_t>(64, (amplitudes.size() + parts - 1) / parts);
  const std::uint64_t used = (amplitudes.size() + part - 1) / part;
  std::vector<std::vector<double>> sums(used);
  base::parallel_for(base::thread_count(options.threads), amplitudes.size(), part,
                     [&](std::uint64_t begin, std::uint64_t end) {
                       auto& sum = sums[begin / part];
                       sum.assign(out.size(), 0.0);
                       for (std::uint64_t i = begin; i < end; i += 64) {
                         const std::uint64_t count = std::min<std::uint64_t>(64, end - i);
                         double* const entry = sum.data() + value_of(i & ~std::uint64_t{63});
                         if (low_value_bits == 0) {
                           *entry += block_norm(amplitudes.data() + i, count);
                         } else {
                           for (std::uint64_t k = 0; k < count; ++k)
                             entry[low_values[k]] += probability(amplitudes[i + k]);
                         }
                       }
                     });
  for (const auto& sum : sums) {
    for (std::size_t value = 0; value < out.size(); ++value) out[value] += sum[value];
  }
}

template <typename T>
void pauli_products(std::span<const std::complex<T>> a, std::span<const std::complex<T>> b,
                    std::span<const LocalPauli> paulis, std::span<Sum> out, const EngineOptions& options) {
  if (!std::has_single_bit(a.size())) {
    throw BadInput("expected a number of amplitudes that is a power of two, found " + std::to_string(a.size()));
  }
  check_sizes(a.size(), b.size(), "pauli_products, second state");
  check_sizes(paulis.size(), out.size(), "pauli_products, results");
  for (const LocalPauli& pauli : paulis) {
    if (((pauli.x_mask | pauli.z_mask) & ~(a.size() - 1)) != 0) {
      throw BadInput("expected Pauli strings within " + base::counted(a.size(), "amplitude") + ", found higher bits");
    }
  }
  const auto groups = shared_x(paulis);
  const std::uint64_t part = std::max<std::uint64_t>(block_size, a.size() / max_parts);
  std::vector<std::vector<Sum>> sums((a.size() + part - 1) / part);
  base::parallel_for(base::thread_count(options.threads), a.size(), part,
                     [&](std::uint64_t part_begin, std::uint64_t part_end) {
                       auto& sum = sums[part_begin / part];
                       sum.assign(paulis.size(), Sum(0));
                       const std::uint64_t size = std::min(block_size, part_end - part_begin);
                       BlockProducts<T> products(a, b, paulis, size);
                       for (std::uint64_t begin = part_begin; begin < part_end; begin += size) {
                         for (const SharedX& group : groups) products.add(group, begin, sum);
                       }
                     });
  constexpr Sum powers[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  for (std::size_t i = 0; i < paulis.size(); ++i) {
    Sum total = 0;
    for (const auto& sum : sums) total += sum[i];
    out[i] = total * powers[std::popcount(paulis[i].x_mask & paulis[i].z_mask) % 4];
  }
}

template <typename T>
Sum inner_product(std::span<const std::complex<T>> a, std::span<const std::complex<T>> b,
                  const EngineOptions& options) {
  const LocalPauli identity;
  Sum product = 0;
  pauli_products<T>(a, b, {&identity, 1}, {&product, 1}, options);
  return product;
}

template <typename T>
void collapse(std::span<std::complex<T>> amplitudes, int bit, int value, double factor, const EngineOptions& options) {
  check_bit(bit, amplitudes.size());
  const std::uint64_t mask = std::uint64_t{1} << bit;
  const std::uint64_t kept = value != 0 ? mask : 0;
  const T scale = static_cast<T>(factor);
  base::parallel_for(
      base::thread_count(options.threads), amplitudes.size(), block_size, [&](std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t i = begin; i < end; ++i) {
          amplitudes[i] = (i & mask) == kept
                              ? std::complex<T>(amplitudes[i].real() * scale, amplitudes[i].imag() * scale)
                              : std::complex<T>(0);
        }
      });
}

template <typename T>
void sample(std::span<const std::complex<T>> amplitudes, std::span<const double> thresholds,
            std::span<std::uint64_t> out, const EngineOptions& options) {
  check_sizes(thresholds.size(), out.size(), "sample, results");
  if (!std::is_sorted(thresholds.begin(), thresholds.end())) throw BadInput("sample: expected ascending thresholds");
  const int threads = base::thread_count(options.threads);
  const std::vector<double> norms = block_norms(amplitudes, threads);
  // first[b]: the first threshold in block b or later. Thresholds beyond the total, by rounding, belong to the last
  // block with a nonzero probability.
  std::vector<double> before(norms.size() + 1, 0.0);
  std::vector<std::size_t> first(norms.size() + 1, 0);
  std::size_t last_block = 0;
  for (std::size_t b = 0; b < norms.size(); ++b) {
    before[b + 1] = before[b] + norms[b];
    first[b + 1] = static_cast<std::size_t>(std::lower_bound(thresholds.begin(), thresholds.end(), before[b + 1]) -
                                            thresholds.begin());
    if (norms[b] > 0) last_block = b;
  }
  for (std::size_t b = last_block + 1; b <= norms.size(); ++b) first[b] = thresholds.size();
  base::parallel_for(threads, norms.size(), 1, [&](std::uint64_t block, std::uint64_t) {
    std::size_t shot = first[block];
    const std::size_t stop = first[block + 1];
    if (shot == stop) return;
    const std::uint64_t begin = block * block_size;
    const std::uint64_t end = std::min<std::uint64_t>(amplitudes.size(), begin + block_size);
    double sum = before[block];
    std::uint64_t possible = begin;  // the last amplitude that is not zero
    for (std::uint64_t i = begin; i < end && shot < stop; ++i) {
      const double p = probability(amplitudes[i]);
      if (p > 0) possible = i;
      sum += p;
      while (shot < stop && thresholds[shot] < sum) out[shot++] = possible;
    }
    while (shot < stop) out[shot++] = possible;
  });
}

#define ONEHOP_INSTANTIATE(T)                                                                                  \
  template double norm_squared<T>(std::span<const std::complex<T>>, const EngineOptions&);                     \
  template void probabilities<T>(std::span<const std::complex<T>>, std::span<const int>, std::span<double>,    \
                                 const EngineOptions&);                                                        \
  template void pauli_products<T>(std::span<const std::complex<T>>, std::span<const std::complex<T>>,          \
                                  std::span<const LocalPauli>, std::span<Sum>, const EngineOptions&);          \
  template Sum inner_product<T>(std::span<const std::complex<T>>, std::span<const std::complex<T>>,            \
                                const EngineOptions&);                                                         \
  template void collapse<T>(std::span<std::complex<T>>, int, int, double, const EngineOptions&);               \
  template void sample<T>(std::span<const std::complex<T>>, std::span<const double>, std::span<std::uint64_t>, \
                          const EngineOptions&);
ONEHOP_INSTANTIATE(float)
ONEHOP_INSTANTIATE(double)
#undef ONEHOP_INSTANTIATE

}  // namespace onehop::quantum
