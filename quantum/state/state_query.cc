// Queries of a state: amplitudes, probabilities, inner products and reduced density matrices.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "quantum/state/state_impl.h"
#include "src/base/one_size.h"

namespace onehop::quantum {
namespace {

using Sum = std::complex<double>;

// Calls visit(place) for the places that differ from `place` in the bits of `mask` only, in ascending order.
template <typename Visit>
void for_each_place(std::uint64_t place, std::uint64_t mask, Visit&& visit) {
  for (std::uint64_t part = 0;;) {
    visit(place | part);
    part = (part - mask) & mask;
    if (part == 0) return;
  }
}

}  // namespace

double State::pass_seconds() {
  std::vector<double> seconds(static_cast<std::size_t>(impl_->group.size()));
  sum_over_ranks(impl_->group, seconds);  // synchronises the ranks
  double& mine = seconds[static_cast<std::size_t>(impl_->group.rank())];
  if (impl_->stored) {
    mine = 0;
  } else if (impl_->on_device) {
    const LocalOperation negate{.kind = LocalKind::diagonal, .values = {-1}};
    mine = 1e300;
    for (int round = 0; round < 4; ++round) mine = std::min(mine, impl_->on_device->apply({&negate, 1}).seconds);
  } else if (impl_->is_encoded()) {
    // The time of memory alone: signs of bytes are exchanged and exchanged back.
    mine = quantum::pass_seconds<float>({reinterpret_cast<std::complex<float>*>(impl_->memory.bytes().data()),
                                         impl_->memory.bytes().size() / sizeof(std::complex<float>)},
                                        impl_->engine);
  } else {
    mine = impl_->visit(
        [&]<typename T>(std::span<std::complex<T>> a) { return quantum::pass_seconds<T>(a, impl_->engine); });
  }
  sum_over_ranks(impl_->group, seconds);
  return *std::max_element(seconds.begin(), seconds.end());
}

double State::norm_squared() const {
  std::vector<double> norms;
  if (impl_->on_device) {
    norms.push_back(0);
    impl_->on_device->probabilities({}, norms);
    return sum_over_parts(impl_->group, norms, 1).front();
  }
  if (impl_->in_pieces()) {
    norms.push_back(0);
    impl_->for_windows([&]<typename T>(std::span<const std::complex<T>> amplitudes, std::uint64_t) {
      norms.front() += quantum::norm_squared<T>(amplitudes, impl_->engine);
    });
    return sum_over_parts(impl_->group, norms, 1).front();
  }
  impl_->visit([&]<typename T>(std::span<std::complex<T>> local) {
    const std::size_t size = std::size_t{1} << impl_->part_bits;
    for (std::size_t begin = 0; begin < local.size(); begin += size) {
      norms.push_back(quantum::norm_squared<T>(local.subspan(begin, size), impl_->engine));
    }
  });
  return sum_over_parts(impl_->group, norms, 1).front();
}

double State::fidelity_estimate() const {
  double lost = impl_->is_encoded() ? impl_->encoded.lost() : 0;
  sum_query(impl_->group, {"fidelity_estimate", {"function", 0}}, std::span(&lost, 1));
  return std::exp(-lost);
}

std::vector<Sum> State::amplitudes(std::span<const std::uint64_t> indices) const {
  std::vector<Sum> result(indices.size());
  onehop::detail::check_together(impl_->group, [&] {
    for (const std::uint64_t index : indices) {
      if (impl_->qubits >= 62 || index >> impl_->qubits == 0) continue;
      throw BadInput("amplitude " + std::to_string(index) + " does not exist; the state has 2^" +
                     std::to_string(impl_->qubits));
    }
  });
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::uint64_t place = 0;
    bool mine = true;
    for (int qubit = 0; qubit < impl_->qubits; ++qubit) {
      const int bit = impl_->bits[static_cast<std::size_t>(qubit)];
      const std::uint64_t value = indices[i] >> qubit & 1U;
      if (bit < impl_->local_bits) {
        place |= value << bit;
      } else {
        mine = mine && impl_->held(bit) == value;
      }
    }
    if (!mine) continue;
    with_type(impl_->precision, [&]<typename T>() {
      const std::uint64_t block = impl_->on_device ? 1 : std::uint64_t{1} << EncodedAmplitudes::block_bits;
      std::vector<std::complex<T>> decoded;
      const auto around = impl_->in_pieces() ? impl_->piece<T>(place & ~(block - 1), block, decoded)
                                             : impl_->piece<T>(place, 1, decoded);
      result[i] = Sum(around[impl_->in_pieces() ? place & (block - 1) : 0]);
    });
  }
  sum_query(impl_->group, {"amplitudes", {"indices", indices}}, std::span(result));
  return result;
}

std::vector<Sum> State::gather() const {
  std::vector<Sum> whole(std::size_t{1} << impl_->qubits);
  if (impl_->stored) {
    impl_->for_windows([&](auto amplitudes, std::uint64_t first) {
      for (std::size_t i = 0; i < amplitudes.size(); ++i) whole[index_of(first + i)] = Sum(amplitudes[i]);
    });
    return whole;
  }
  std::vector<std::byte> local(impl_->on_device ? impl_->on_device->amplitude_bytes() << impl_->local_bits : 0);
  if (impl_->on_device) impl_->on_device->read(0, local);
  const std::span<const std::byte> mine = impl_->on_device ? local : std::span<const std::byte>(impl_->memory.bytes());
  const Gathered all = base::of_one_size(impl_->group.allgather(mine), mine.size());
  const std::vector<double> scales = base::values_of_all(impl_->group, impl_->encoded.scale());
  std::vector<int> to(impl_->bits.size());  // the qubit of each bit
  for (std::size_t qubit = 0; qubit < to.size(); ++qubit)
    to[static_cast<std::size_t>(impl_->bits[qubit])] = static_cast<int>(qubit);
  const std::size_t size = std::size_t{1} << impl_->local_bits;
  with_type(impl_->precision, [&]<typename T>() {
    std::vector<std::complex<float>> decoded(impl_->is_encoded() ? size : 0);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const std::byte* amplitudes = all[rank].data();
      if (impl_->is_encoded()) {
        std::vector<std::byte> copy(all[rank].begin(), all[rank].end());
        EncodedAmplitudes theirs(codec_of(impl_->precision), impl_->local_bits, copy);
        theirs.set_scale(scales[rank]);
        theirs.read(0, decoded, impl_->engine.threads);
        amplitudes = reinterpret_cast<const std::byte*>(decoded.data());
      }
      for (std::size_t i = 0; i < size; ++i) {
        const std::uint64_t place = ((rank << impl_->local_bits) | i) ^ impl_->flips;
        std::uint64_t index = 0;
        for (std::size_t bit = 0; bit < to.size(); ++bit) index |= (place >> bit & 1U) << to[bit];
        std::complex<T> value;
        std::memcpy(&value, amplitudes + i * sizeof(value), sizeof(value));
        whole[index] = Sum(value);
      }
    }
  });
  return whole;
}

std::vector<double> State::probabilities(std::span<const int> qubits) const {
  onehop::detail::check_together(impl_->group, [&] {
    impl_->check_distinct(qubits);
    if (qubits.size() <= 24) return;
    throw BadInput("probabilities: expected at most 24 qubits, found " + std::to_string(qubits.size()) +
                   "; sample, or ask for fewer");
  });
  // The probabilities of the qubits inside a window, placed at the value of the qubits on higher bits.
  std::vector<int> bits;
  std::vector<std::size_t> positions;
  std::vector<std::pair<int, std::size_t>> higher;
  std::size_t held = 0;
  for (std::size_t i = 0; i < qubits.size(); ++i) {
    const int bit = impl_->bit_of(qubits[i]);
    if (bit < (impl_->on_device ? impl_->local_bits : impl_->window_bits())) {
      bits.push_back(bit);
      positions.push_back(i);
    } else if (bit < impl_->local_bits) {
      higher.emplace_back(bit, i);
    } else {
      held |= static_cast<std::size_t>(impl_->held(bit)) << i;
    }
  }
  std::vector<double> local(std::size_t{1} << bits.size());
  std::vector<double> result(std::size_t{1} << qubits.size());
  const auto add_at = [&](std::uint64_t first) {
    std::size_t base = held;
    for (const auto& [bit, position] : higher) base |= (first >> bit & 1U) << position;
    for (std::size_t i = 0; i < local.size(); ++i) {
      std::size_t index = base;
      for (std::size_t j = 0; j < positions.size(); ++j) index |= (i >> j & 1U) << positions[j];
      result[index] += local[i];
    }
  };
  if (impl_->on_device) {
    impl_->on_device->probabilities(bits, local);
    add_at(0);
  } else {
    impl_->for_windows([&]<typename T>(std::span<const std::complex<T>> amplitudes, std::uint64_t first) {
      quantum::probabilities<T>(amplitudes, bits, local, impl_->engine);
      add_at(first);
    });
  }
  sum_query(impl_->group, {"probabilities", {"qubits", qubits}}, std::span(result));
  return result;
}

Sum State::inner_product(State& other) {
  if (other.qubits() != qubits() || other.precision() != precision() || other.group().size() != group().size()) {
    throw BadInput("inner_product: expected two states of equal size, precision and ranks, found " +
                   std::to_string(qubits()) + " and " + std::to_string(other.qubits()) + " qubits on " +
                   std::to_string(group().size()) + " and " + std::to_string(other.group().size()) + " ranks");
  }
  onehop::detail::require_same(
      impl_->group, "inner_product",
      {{"layouts", base::hash_of(impl_->bits, impl_->flips, other.impl_->bits, other.impl_->flips)}});
  if (impl_->flips != 0 || other.impl_->flips != 0) {
    restore_order();
    other.restore_order();
  }
  std::vector<int> permutation(impl_->bits.size());
  for (std::size_t qubit = 0; qubit < permutation.size(); ++qubit) {
    permutation[static_cast<std::size_t>(other.impl_->bits[qubit])] = impl_->bits[qubit];
  }
  other.permute(permutation);
  Sum sum = 0;
  if (impl_->on_device && impl_->device == other.impl_->device) {
    const LocalPauli identity;
    impl_->on_device->pauli_products(*other.impl_->on_device, {&identity, 1}, {&sum, 1});
    sum_over_ranks(impl_->group, std::span(&sum, 1));
    return sum;
  }
  impl_->for_windows([&]<typename T>(std::span<const std::complex<T>> mine, std::uint64_t first) {
    std::vector<std::complex<T>> decoded;
    sum += quantum::inner_product<T>(mine, other.piece(first, mine.size(), decoded), impl_->engine);
  });
  sum_over_ranks(impl_->group, std::span(&sum, 1));
  return sum;
}

std::vector<Sum> State::reduced_density_matrix(std::span<const int> qubits) {
  onehop::detail::require_same(impl_->group, "density_matrix", {{"qubits", qubits}});
  if (qubits.size() > 12) {
    throw BadInput("reduced_density_matrix: expected at most 12 qubits, found " + std::to_string(qubits.size()));
  }
  make_local(qubits);
  if (impl_->in_pieces()) make_lowest(qubits);
  const std::size_t size = std::size_t{1} << qubits.size();
  std::vector<std::uint64_t> offsets(size);
  std::uint64_t inside = 0;
  for (std::size_t i = 0; i < qubits.size(); ++i) {
    const std::uint64_t bit = std::uint64_t{1} << impl_->bit_of(qubits[i]);
    inside |= bit;
    for (std::size_t index = 0; index < size; ++index) offsets[index] |= (index >> i & 1U) * bit;
  }
  std::vector<Sum> matrix(size * size);
  std::vector<Sum> part(size);
  const std::uint64_t outside = ((std::uint64_t{1} << impl_->window_bits()) - 1) & ~inside;
  impl_->for_windows([&](auto local, std::uint64_t) {
    for_each_place(0, outside, [&](std::uint64_t place) {
      for (std::size_t i = 0; i < size; ++i) part[i] = Sum(local[place | offsets[i]]);
      for (std::size_t r = 0; r < size; ++r) {
        for (std::size_t c = 0; c <= r; ++c) matrix[r * size + c] += part[r] * std::conj(part[c]);
      }
    });
  });
  for (std::size_t r = 0; r < size; ++r) {
    for (std::size_t c = 0; c < r; ++c) matrix[c * size + r] = std::conj(matrix[r * size + c]);
  }
  sum_over_ranks(impl_->group, matrix);
  return matrix;
}

}  // namespace onehop::quantum
