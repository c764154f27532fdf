// The amplitudes with which a state begins: products, given amplitudes, and those of another state.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>

#include "onehop/error.h"
#include "quantum/state/state_impl.h"
#include "src/base/text.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {

void State::set_product(std::span<const std::array<std::complex<double>, 2>> wires, std::span<const int> bits) {
  set_layout({bits.begin(), bits.end()}, 0);
  for (std::uint64_t part = 0; part < impl_->parts(); ++part) impl_->set_product_part(wires, part);
}

void State::Impl::set_product_part(std::span<const std::array<std::complex<double>, 2>> wires, std::uint64_t part) {
  const std::uint64_t number = static_cast<std::uint64_t>(group.rank()) * parts() + part;
  std::complex<double> factor = 1;
  std::vector<std::array<std::complex<double>, 2>> local(static_cast<std::size_t>(part_bits));
  for (std::size_t wire = 0; wire < wires.size(); ++wire) {
    const int bit = bits[wire];
    if (bit < part_bits) {
      local[static_cast<std::size_t>(bit)] = wires[wire];
    } else {
      factor *= wires[wire][number >> (bit - part_bits) & 1U];
    }
  }
  // Tabulate the products over the lower bits once, then write each amplitude as an entry times a factor of its higher
  // bits.
  const int low = std::min(part_bits, 12);
  std::vector<std::complex<double>> table;
  table.reserve(std::size_t{1} << low);
  table.push_back(factor);
  for (int bit = 0; bit < low; ++bit) {
    const auto& [zero, one] = local[static_cast<std::size_t>(bit)];
    const std::size_t size = table.size();
    // Written out, because operator* of complex numbers handles infinities.
    const auto times = [](std::complex<double> a, std::complex<double> b) {
      return std::complex<double>(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    };
    for (std::size_t i = 0; i < size; ++i) table.push_back(times(table[i], one));
    for (std::size_t i = 0; i < size; ++i) table[i] = times(table[i], zero);
  }
  if (on_device) {
    std::vector<std::complex<double>> higher;
    for (int bit = low; bit < part_bits; ++bit) {
      const auto& both = local[static_cast<std::size_t>(bit)];
      higher.insert(higher.end(), both.begin(), both.end());
    }
    return on_device->set_product(table, higher);
  }
  const auto fill = [&]<typename T>(std::span<std::complex<T>> all, std::uint64_t first) {
    const auto amplitudes = part_bits < local_bits ? all.subspan(part << part_bits, std::size_t{1} << part_bits) : all;
    base::parallel_for(engine.threads, amplitudes.size(), table.size(), [&](std::uint64_t begin, std::uint64_t) {
      std::complex<double> high = 1;
      for (int bit = low; bit < part_bits; ++bit) {
        high *= local[static_cast<std::size_t>(bit)][(first + begin) >> bit & 1U];
      }
      for (std::size_t i = 0; i < table.size(); ++i) {
        const double re = table[i].real() * high.real() - table[i].imag() * high.imag();
        const double im = table[i].real() * high.imag() + table[i].imag() * high.real();
        amplitudes[begin + i] = {static_cast<T>(re), static_cast<T>(im)};
      }
    });
  };
  change_windows(fill, true);
}

void State::set_basis_state(std::uint64_t index) {
  if (impl_->qubits < 62 && index >> impl_->qubits != 0) {
    throw BadInput("basis state " + std::to_string(index) + " does not exist with " +
                   base::counted(impl_->qubits, "qubit"));
  }
  std::vector<std::array<std::complex<double>, 2>> product;
  std::vector<int> order;
  for (int qubit = 0; qubit < impl_->qubits; ++qubit) {
    product.push_back({});
    product.back()[(index >> qubit) & 1U] = 1;
    order.push_back(qubit);
  }
  set_product(product, order);
}

// Checks amplitudes; returns the factor that makes their norm 1, or 1 if they need none.
static double checked_factor(std::span<const std::complex<double>> amplitudes, Norm rule) {
  if (rule == Norm::any) return 1;
  double sum = 0;
  for (std::size_t i = 0; i < amplitudes.size(); ++i) {
    const double square = std::norm(amplitudes[i]);
    if (!std::isfinite(square)) {
      throw BadInput(
          "set_amplitudes: expected finite amplitudes, found an infinity or NaN, or a square that overflows, "
          "at index " +
          std::to_string(i));
    }
    sum += square;
  }
  const double norm = std::sqrt(sum);
  // The squares of smaller numbers are subnormal or 0, so that the norm would be rounded to a few bits.
  if (rule == Norm::normalize && norm >= 1e-145 && std::isfinite(norm)) return 1 / norm;
  if (!(std::abs(norm - 1) <= 1e-5)) {
    const bool asked = rule == Norm::normalize;
    throw BadInput("set_amplitudes: expected amplitudes of " +
                   std::string(asked ? "a finite norm of 1e-145 or more" : "norm 1 within 1e-5") + ", found the norm " +
                   base::number_text(norm) + (asked ? "" : "; pass normalize=True to divide by it"));
  }
  return 1;
}

void State::set_amplitudes(std::span<const std::complex<double>> amplitudes, Norm norm) {
  const std::size_t size = std::size_t{1} << impl_->local_bits;
  const std::size_t first = size * static_cast<std::size_t>(impl_->group.rank());
  double factor = 1;
  onehop::detail::check_together(impl_->group, [&] {
    if (amplitudes.size() != std::size_t{1} << impl_->qubits) {
      throw BadInput("expected 2^" + std::to_string(impl_->qubits) + " amplitudes, found " +
                     std::to_string(amplitudes.size()));
    }
    factor = checked_factor(amplitudes, norm);
  });
  if (norm != Norm::any && impl_->group.size() > 1) {
    double square = 0;
    for (const auto& amplitude : amplitudes.subspan(first, size)) square += std::norm(amplitude * factor);
    sum_over_ranks(impl_->group, std::span(&square, 1));
    const double found = std::sqrt(square);
    if (!(std::abs(found - 1) <= 2e-5)) {
      throw Mismatch(
          "set_amplitudes: expected the same amplitudes on every rank, found arrays of which the parts have "
          "the norm " +
          base::number_text(found));
    }
  }
  std::vector<int> order(impl_->bits.size());
  std::iota(order.begin(), order.end(), 0);
  set_layout(order, 0);
  const auto set = [&](auto local, std::uint64_t begin) {
    using Amplitude = typename decltype(local)::value_type;
    for (std::size_t i = 0; i < local.size(); ++i) local[i] = Amplitude(amplitudes[first + begin + i] * factor);
  };
  impl_->change_windows(set, true);
}

void State::copy_from(const State& other) {
  if (other.qubits() != qubits() || other.precision() != precision() || other.local_bits() != local_bits()) {
    throw BadInput("copy_from: expected a state of " + base::counted(qubits(), "qubit") +
                   " with the same precision and ranks, found one of " + std::to_string(other.qubits()));
  }
  impl_->bits = other.impl_->bits;
  impl_->flips = other.impl_->flips;
  if (impl_->is_encoded() && !impl_->stored && !other.impl_->stored) {
    return impl_->encoded.copy_from(other.impl_->encoded);
  }
  if (impl_->on_device && impl_->device == other.impl_->device)
    return impl_->on_device->copy_from(*other.impl_->on_device);
  impl_->visit([&]<typename T>(std::span<std::complex<T>> local) {
    const auto from = other.local<T>();
    base::parallel_for(impl_->engine.threads, local.size(), std::uint64_t{1} << 16,
                       [&](std::uint64_t begin, std::uint64_t end) {
                         std::memcpy(local.data() + begin, from.data() + begin, (end - begin) * sizeof(local[0]));
                       });
  });
}

}  // namespace onehop::quantum
