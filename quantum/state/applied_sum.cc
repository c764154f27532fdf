// Applies weighted sums of Pauli strings to a state.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "onehop/quantum/observable.h"
#include "quantum/device/device_amplitudes.h"
#include "quantum/state/pauli_masks.h"
#include "quantum/state/precision.h"
#include "src/base/text.h"
#include "src/group/require_same.h"

namespace onehop::quantum {

Masks masks_of(const PauliTerm& term, int qubits) {
  Masks masks;
  for (const auto& [qubit, letter] : term.paulis) {
    if (qubit < 0 || qubit >= qubits) {
      throw BadInput("expected observables on qubits 0 to " + std::to_string(qubits - 1) + ", found " +
                     std::string(1, letter) + " on qubit " + std::to_string(qubit));
    }
    const std::uint64_t bit = std::uint64_t{1} << qubit;
    if (((masks.x | masks.z) & bit) != 0) {
      throw BadInput("expected one letter per qubit in a Pauli string, found two on qubit " + std::to_string(qubit));
    }
    if (letter != 'Z') masks.x |= bit;
    if (letter != 'X') masks.z |= bit;
  }
  return masks;
}

void add_to(base::Fingerprint& print, const PauliSum& sum) {
  print.add(sum.terms.size());
  for (const PauliTerm& term : sum.terms) {
    print.add(term.coefficient);
    print.add(term.paulis.size());
    for (const auto& [qubit, pauli] : term.paulis) {
      print.add(static_cast<std::uint64_t>(qubit) << 8 | static_cast<unsigned char>(pauli));
    }
  }
}

void check_observables(std::span<const PauliSum> sums, int qubits, bool hermitian) {
  for (std::size_t s = 0; s < sums.size(); ++s) {
    if (sums[s].qubits() > qubits) {
      throw BadInput("expected observables on qubits 0 to " + std::to_string(qubits - 1) + ", found qubit " +
                     std::to_string(sums[s].qubits() - 1));
    }
    for (const PauliTerm& term : sums[s].terms) {
      static_cast<void>(masks_of(term, qubits));
      if (hermitian && term.coefficient.imag() != 0) {
        throw BadInput("observable " + std::to_string(s) + ": expected real weights, so that it is Hermitian, found " +
                       base::number_text(term.coefficient.real()) + " + " + base::number_text(term.coefficient.imag()) +
                       "i");
      }
    }
  }
}

namespace {

using Number = std::complex<double>;

class Application {
 public:
  Application(const State& state, const PauliSum& sum, double scale, State& result) : state_(state), result_(result) {
    for (const PauliTerm& term : sum.terms) {
      const Masks masks = masks_of(term, state.qubits());
      strings_.push_back({on_bits(state, masks.x), on_bits(state, masks.z), scale * term.coefficient});
    }
  }

  template <typename T>
  void run() {
    std::map<std::uint64_t, std::vector<String>> by_partner;
    for (const String& one : strings_) by_partner[one.x >> state_.local_bits()].push_back(one);
    for (const auto& [partner, strings] : by_partner) {
      if (partner == 0) {
        add_local<T>(strings);
      } else {
        stream<T>(partner, strings);
      }
    }
  }

 private:
  struct String {
    std::uint64_t x = 0, z = 0;  // masks of bits of an amplitude's position
    Number factor;
  };

  // The strings that need amplitudes of this rank only, for each of its parts.
  template <typename T>
  void add_local(const std::vector<String>& strings) {
    const int bits = state_.part_bits();
    const std::size_t size = std::size_t{1} << bits;
    std::map<std::uint64_t, std::vector<String>> by_shift;  // XOR of the numbers of both parts
    for (const String& one : strings) by_shift[one.x >> bits].push_back(one);
    if (state_.on_device() != nullptr) {
      const auto [paulis, factors] = of_chunk(strings, 0, bits);
      return state_.on_device()->add_paulis(paulis, factors, *result_.on_device());
    }
    for (const auto& [shift, some] : by_shift) {
      for (std::uint64_t part = 0; part << bits < state_.local<T>().size(); ++part) {
        add<T>(some, state_.local<T>().subspan((part ^ shift) * size, size),
               result_.local<T>().subspan(part * size, size), part, bits);
      }
    }
  }

  // Adds the strings applied to `from` to the amplitudes `to` with the number `chunk` of 2^bits each.
  template <typename T>
  void add(const std::vector<String>& strings, std::span<const std::complex<T>> from, std::span<std::complex<T>> to,
           std::uint64_t chunk, int bits) {
    const auto [paulis, factors] = of_chunk(strings, chunk, bits);
    add_paulis<T>(from, paulis, factors, to, state_.engine());
  }

  // The strings inside a chunk, with the factors that their parts outside have there.
  [[nodiscard]] std::pair<std::vector<LocalPauli>, std::vector<Number>> of_chunk(const std::vector<String>& strings,
                                                                                 std::uint64_t chunk, int bits) const {
    static constexpr std::array<Number, 4> powers{Number(1), Number(0, -1), Number(-1), Number(0, 1)};
    const std::uint64_t inside = (std::uint64_t{1} << bits) - 1;
    const std::uint64_t row =
        ((static_cast<std::uint64_t>(state_.group().rank()) << state_.local_bits()) | chunk << bits) ^ state_.flips();
    std::vector<LocalPauli> paulis;
    std::vector<Number> factors;
    for (const String& one : strings) {
      const Number power = powers[static_cast<std::size_t>(std::popcount(one.x & one.z & ~inside)) % 4];
      const double sign = std::popcount(one.z & row & ~inside) % 2 != 0 ? -1 : 1;
      paulis.push_back({one.x & inside, one.z & inside});
      factors.push_back(sign * power * one.factor);
    }
    return {std::move(paulis), std::move(factors)};
  }

  // The strings that need the amplitudes of another rank, which pass through a bounded buffer.
  template <typename T>
  void stream(std::uint64_t partner, const std::vector<String>& strings) {
    const int chunk_bits = std::min(state_.part_bits(), 16);
    const std::size_t chunk = std::size_t{1} << chunk_bits;
    const std::uint64_t local_mask = (std::uint64_t{1} << state_.local_bits()) - 1;
    std::map<std::uint64_t, std::vector<String>> by_shift;  // XOR of the chunk numbers of both ranks
    for (const String& one : strings) by_shift[(one.x & local_mask) >> chunk_bits].push_back(one);
    stream_partner<T>(state_, partner, chunk_bits, by_shift,
                      [&](const std::vector<String>& some, std::span<const std::complex<T>> got, std::uint64_t c) {
                        DeviceAmplitudes* const device = result_.on_device();
                        if (device == nullptr) {
                          return add<T>(some, got, result_.local<T>().subspan(c * chunk, chunk), c, chunk_bits);
                        }
                        std::vector<std::complex<T>> sum(chunk);
                        device->read(c * chunk, std::as_writable_bytes(std::span(sum)));
                        add<T>(some, got, sum, c, chunk_bits);
                        device->write(c * chunk, std::as_bytes(std::span(sum)));
                      });
  }

  const State& state_;
  State& result_;
  std::vector<String> strings_;
};

}  // namespace

void add_applied(const State& state, const PauliSum& sum, double scale, State& result) {
  const bool alike = state.qubits() == result.qubits() && state.precision() == result.precision() &&
                     state.device() == result.device() && state.local_bits() == result.local_bits() &&
                     state.part_bits() == result.part_bits() && state.flips() == result.flips() &&
                     std::equal(state.bits().begin(), state.bits().end(), result.bits().begin());
  if (!alike) {
    throw BadInput("expected a result with the qubits, precision, ranks and layout of the state, found others");
  }
  Application application(state, sum, scale, result);
  with_type(state.precision(), [&]<typename T>() { application.run<T>(); });
}

std::complex<double> apply_sum(const State& state, const PauliSum& sum, State& result) {
  result.set_layout({state.bits().begin(), state.bits().end()}, state.flips());
  result.fill_zero();
  add_applied(state, sum, 1, result);
  // State::inner_product would move the amplitudes if bits are flipped.
  std::vector<double> products;  // of each part
  if (state.on_device() != nullptr) {
    const LocalPauli identity;
    Number value;
    state.on_device()->pauli_products(*result.on_device(), {&identity, 1}, {&value, 1});
    products = {value.real(), value.imag()};
  }
  with_type(state.precision(), [&]<typename T>() {
    if (!products.empty()) return;
    const std::size_t size = std::size_t{1} << state.part_bits();
    for (std::size_t begin = 0; begin < state.local<T>().size(); begin += size) {
      const Number value = inner_product<T>(state.local<T>().subspan(begin, size),
                                            result.local<T>().subspan(begin, size), state.engine());
      products.insert(products.end(), {value.real(), value.imag()});
    }
  });
  const auto sums = sum_over_parts(state.group(), products, 2);
  return {sums[0], sums[1]};
}

std::vector<double> variances(const State& state, std::span<const PauliSum> sums) {
  onehop::detail::require_same(state.group(), "variances", {{"observables", sums}});
  require_plain(state.precision(), "variances");
  if (state.is_stored()) throw BadInput("variances: expected a state in memory, found one in a file");
  check_observables(sums, state.qubits(), true);
  std::vector<double> result;
  if (sums.empty()) return result;
  StateOptions options;
  options.threads = state.engine().threads;
  options.device = state.device();
  State applied(state.group(), state.qubits(), state.precision(), options);
  for (const PauliSum& sum : sums) {
    const double mean = apply_sum(state, sum, applied).real();
    result.push_back(std::max(0.0, applied.norm_squared() - mean * mean));
  }
  return result;
}

}  // namespace onehop::quantum
