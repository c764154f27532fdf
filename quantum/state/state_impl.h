// The private data of `State`, shared by its source files.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <complex>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "onehop/plan.h"
#include "onehop/quantum/state.h"
#include "quantum/device/device_amplitudes.h"
#include "quantum/engine/encoded_amplitudes.h"
#include "quantum/state/precision.h"
#include "quantum/state/stored_amplitudes.h"
#include "src/group/require_same.h"

namespace onehop::quantum {

// The bytes of 2^bits amplitudes.
[[nodiscard]] std::int64_t bytes_of_amplitudes(Precision precision, int bits);

// The bytes of staging per partner, such that the memory of the state stays within 1.02 times its amplitudes.
[[nodiscard]] std::int64_t staging_of(int local_bits, int ranks, Precision precision, std::int64_t max_bytes);

// Throws Error on all ranks unless the state fits into the memory of every machine. Returns the ranks per host, which
// need the same communication. Collective.
[[nodiscard]] int check_memory(const Group& group, int qubits, Precision precision, const StateOptions& options);

// What a device holds beside the amplitudes of a rank.
inline constexpr std::int64_t device_work_bytes = std::int64_t{64} << 20;

// Makes the amplitudes of each rank on a device. Throws Error on all ranks if one has no such device, or if its memory
// does not suffice. Collective.
[[nodiscard]] std::unique_ptr<DeviceAmplitudes> make_on_device(const Group& group, int qubits, Precision precision,
                                                               const StateOptions& options);

// The swaps that bring local bit i to bit permutation[i].
[[nodiscard]] std::vector<LocalOperation> swaps_of(std::vector<int> permutation);

// A permutation of bits as three, of which only the second one moves bits between ranks, and keeps the lowest bits.
[[nodiscard]] std::array<std::vector<int>, 3> around_low_bits(std::vector<int> permutation, std::size_t low,
                                                              std::size_t local);

// A query of a state, of which sums over the ranks compare the argument.
struct Query {
  std::string_view function;
  onehop::detail::Argument argument;
};

// As sum_over_ranks. Throws Mismatch on every rank unless all make the same query.
void sum_query(const Group& group, const Query& query, std::span<double> numbers);
void sum_query(const Group& group, const Query& query, std::span<std::complex<double>> numbers);

struct State::Impl {
  Impl(const Group& group, int qubits, Precision precision, const StateOptions& options);

  Group group;
  int qubits;
  int local_bits = 0;
  int part_bits = 0;  // see State::set_part_bits
  Precision precision;
  std::int64_t staging = 0;  // bytes per partner
  EngineOptions engine;
  int ranks_per_host = 0;
  SharedArray memory;
  EncodedAmplitudes encoded;  // in the memory, if the state is encoded; if it is in a file, too, only its scale
  std::unique_ptr<StoredAmplitudes> stored;
  std::string device;
  std::unique_ptr<DeviceAmplitudes> on_device;
  std::vector<device::Memory> peers;  // the amplitudes of all ranks; empty: of no exchange yet, or out of reach
  bool peers_asked = false;
  std::vector<int> bits;    // the bit of each qubit
  std::uint64_t flips = 0;  // a mask of rank bits and numbers of parts, see State::flips
  StateCounters counters;
  std::vector<std::pair<std::vector<int>, std::unique_ptr<Plan>>> plans;

  template <typename T>
  [[nodiscard]] std::span<std::complex<T>> amplitudes() const {
    return {reinterpret_cast<std::complex<T>*>(memory.bytes().data()), std::size_t{1} << local_bits};
  }
  [[nodiscard]] std::uint64_t parts() const { return std::uint64_t{1} << (local_bits - part_bits); }

  // Calls the function with the amplitudes in the state's precision, which is not an encoded one.
  template <typename Function>
  decltype(auto) visit(Function&& function) const {
    require_plain(precision, "state");
    if (stored) throw BadInput("expected a state in memory, found one in a file, of which memory holds a part");
    if (on_device) throw BadInput("expected a state in memory, found one on the device '" + device + "'");
    if (precision == Precision::single_precision) return function(amplitudes<float>());
    return function(amplitudes<double>());
  }

  // The bytes of amplitudes in memory.
  [[nodiscard]] std::span<std::byte> kept(std::uint64_t first, std::size_t count) const {
    if (on_device) visit([](auto) {});  // throws
    const double each = bytes_per_amplitude(precision);
    const auto place = [&](std::uint64_t at) { return static_cast<std::size_t>(each * static_cast<double>(at)); };
    return memory.bytes().subspan(place(first), place(first + count) - place(first));
  }
  [[nodiscard]] bool is_encoded() const { return quantum::is_encoded(precision); }
  // Whether the amplitudes are not all in memory as numbers.
  [[nodiscard]] bool in_pieces() const { return is_encoded() || stored || on_device; }
  // As State::window_bits.
  [[nodiscard]] int window_bits() const {
    return stored ? stored->window_bits() : is_encoded() || on_device ? std::min(local_bits, 18) : local_bits;
  }
  // As State::piece.
  template <typename T>
  [[nodiscard]] std::span<const std::complex<T>> piece(std::uint64_t first, std::size_t count,
                                                       std::vector<std::complex<T>>& decoded) const {
    if (!in_pieces()) return amplitudes<T>().subspan(first, count);
    decoded.resize(count);
    read_into(first, std::span(decoded));
    return decoded;
  }
  // Reads amplitudes that are encoded, in a file, or both.
  template <typename T>
  void read_into(std::uint64_t first, std::span<std::complex<T>> to) const {
    if (on_device) return on_device->read(first, std::as_writable_bytes(to));
    const auto numbers = stored ? stored->read(first, to.size()) : std::span<std::byte>();
    if constexpr (std::is_same_v<T, float>) {
      if (is_encoded() && stored) {
        return encoded.on(numbers, std::bit_width(to.size()) - 1).read(0, to, engine.threads);
      }
      if (is_encoded()) return encoded.read(first, to, engine.threads);
    }
    std::ranges::copy(numbers, std::as_writable_bytes(to).begin());
  }
  template <typename T>
  RoundingSums write_from(std::uint64_t first, std::span<std::complex<T>> from) {
    RoundingSums sums;
    if (on_device) {
      on_device->write(first, std::as_bytes(from));
      return sums;
    }
    if constexpr (std::is_same_v<T, float>) {
      if (is_encoded() && !stored) return encoded.write(first, from, engine.threads);
    }
    const std::span<std::byte> numbers = stored->memory(from.size());
    if constexpr (std::is_same_v<T, float>) {
      if (is_encoded()) {
        sums = encoded.on(numbers, std::bit_width(from.size()) - 1).write(0, from, engine.threads);
        stored->write(first, numbers);
        return sums;
      }
    }
    std::ranges::copy(std::as_bytes(from), numbers.begin());
    stored->write(first, numbers);
    return sums;
  }
  // Calls function(amplitudes, first) for each window.
  template <typename Function>
  void for_windows(const Function& function) const {
    with_type(precision, [&]<typename T>() {
      std::vector<std::complex<T>> decoded;
      const std::size_t count = std::size_t{1} << window_bits();
      for (std::uint64_t first = 0; first >> local_bits == 0; first += count) {
        function(piece<T>(first, count, decoded), first);
      }
    });
  }
  // Calls change(amplitudes, first) for each window, which may change them. With `fresh`, they need not be read first.
  template <typename Change>
  void change_windows(const Change& change, bool fresh = false) {
    if (!in_pieces()) return visit([&](auto all) { change(all, 0); });
    if (fresh) encoded.reset();
    RoundingSums sums;
    with_type(precision, [&]<typename T>() {
      std::vector<std::complex<T>> window(std::size_t{1} << window_bits());
      for (std::uint64_t first = 0; first >> local_bits == 0; first += window.size()) {
        if (!fresh) read_into(first, std::span(window));
        change(std::span(window), first);
        sums.add(write_from(first, std::span(window)));
      }
    });
    encoded.finish_pass(sums);
  }
  // Gives encoded amplitudes of all ranks one scale, before they are exchanged. Collective.
  void share_scale();
  // Moves the qubits on local bits, where bit i becomes bit permutation[i], by swaps. For encoded states.
  void permute_inside(State& state, const std::vector<int>& permutation);
  // Moves the amplitudes on devices so that bit i becomes bit permutation[i]. Returns the bytes that this rank sent.
  [[nodiscard]] std::int64_t move_on_device(const std::vector<int>& permutation);
  [[nodiscard]] std::int64_t exchange_blocks(const std::vector<int>& permutation, int block_bits);
  [[nodiscard]] std::int64_t exchange_through_memory(const std::vector<int>& permutation, int block_bits);
  [[nodiscard]] bool reach_peers();

  // The plan that moves bit i to bit permutation[i], from the cache if possible. Collective if it must be created.
  [[nodiscard]] Plan& plan_for(const std::vector<int>& permutation);
  // The bytes that this rank sends to ranks on other hosts when bit i moves to bit permutation[i].
  [[nodiscard]] std::int64_t bytes_between_hosts(const std::vector<int>& permutation) const;
  // The value of the qubit on a rank bit, 0 or 1, for the amplitudes of this rank.
  [[nodiscard]] unsigned held(int bit) const;
  [[nodiscard]] int bit_of(int qubit) const;
  // State::set_product of one part of this rank's amplitudes.
  void set_product_part(std::span<const std::array<std::complex<double>, 2>> wires, std::uint64_t part);
  // Throws BadInput unless all qubits exist and are distinct.
  void check_distinct(std::span<const int> qubits) const;
};

}  // namespace onehop::quantum
