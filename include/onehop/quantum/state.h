// A state vector split over the ranks of a group: 2^qubits / ranks amplitudes on each, and a little staging while they are exchanged.
//
// Where a qubit lies may change with every exchange: `bits()` says which bit of an amplitude's place belongs to each qubit (0 .. local_bits-1
// select it inside a rank, the others are the rank's number), `flips()` which bits of the rank's number hold the opposite. Everything that
// speaks of qubits or indices looks through that. Unless stated otherwise everything is collective: every rank of the group calls it with
// the same arguments and gets the same result.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "onehop/group.h"
#include "onehop/quantum/engine.h"

namespace onehop::quantum {

enum class Precision : std::uint8_t { single_precision, double_precision };

[[nodiscard]] constexpr int bytes_per_amplitude(Precision precision) noexcept {
  return precision == Precision::single_precision ? 8 : 16;
}

struct StateOptions {
  int threads = 0;                               // of each rank; 0: its share of the cores that it may use
  std::int64_t staging = std::int64_t{8} << 20;  // bytes per partner in an exchange, at most; small states take less
};

// What a state needs and what there is, on the machine of this rank. Not collective.
struct MemoryNeed {
  std::int64_t per_rank = 0;   // amplitudes and staging
  std::int64_t in_all = 0;     // of all ranks
  std::int64_t here = 0;       // of the ranks on this machine
  std::int64_t available = 0;  // to this machine's ranks together
  [[nodiscard]] bool fits() const noexcept { return here <= available; }
};
[[nodiscard]] MemoryNeed memory_need(int qubits, int ranks, Precision precision, int ranks_here,
                                     const StateOptions& options = {});

// What a state's exchanges have moved between ranks.
struct StateCounters {
  int exchanges = 0;
  std::int64_t bytes_sent = 0;  // by this rank
};

class State {
 public:
  // |0...0>, qubit i on bit i. Throws BadInput: ranks no power of two, more ranks than amplitudes; Error where the memory of a machine does
  // not suffice, with how much is needed, how much there is and what would do, before anything is allocated.
  State(const Group& group, int qubits, Precision precision = Precision::double_precision,
        const StateOptions& options = {});
  State(State&&) noexcept;
  State& operator=(State&&) noexcept;
  ~State();

  // -- what it is (not collective) --
  [[nodiscard]] const Group& group() const noexcept;
  [[nodiscard]] int qubits() const noexcept;
  [[nodiscard]] int local_bits() const noexcept;
  [[nodiscard]] Precision precision() const noexcept;
  [[nodiscard]] std::span<const int> bits() const noexcept;
  [[nodiscard]] std::uint64_t flips() const noexcept;
  [[nodiscard]] const StateCounters& counters() const noexcept;
  [[nodiscard]] const EngineOptions& engine() const noexcept;
  // This rank's amplitudes; T must be the state's precision. Whoever writes them answers for the norm.
  template <typename T>
  [[nodiscard]] std::span<std::complex<T>> local() const;
  // The index (qubit 0 least significant) of the amplitude at a place of this rank.
  [[nodiscard]] std::uint64_t index_of(std::uint64_t place) const;

  // -- beginning --
  // The product of a state for each wire, wires on these bits; not collective, moves nothing.
  void set_product(std::span<const std::array<std::complex<double>, 2>> wires, std::span<const int> bits);
  void set_basis_state(std::uint64_t index);
  // All 2^qubits amplitudes, by index; every rank passes all. Not normalised.
  void set_amplitudes(std::span<const std::complex<double>> amplitudes);
  // Says that the qubits lie so, without moving anything. Not collective.
  void set_layout(std::vector<int> bits, std::uint64_t flips);

  // -- changing --
  // Gates on local bits. Not collective. `records` as in EngineOptions.
  EngineCounters apply(std::span<const LocalOperation> operations, std::vector<PassRecord>* records = nullptr);
  // Moves amplitudes so that bit i becomes bit permutation[i]; the qubits go with their bits.
  void permute(const std::vector<int>& permutation);
  void exchange(std::span<const std::pair<int, int>> swaps);  // disjoint pairs of bits
  void make_local(std::span<const int> qubits);
  // Qubit i on bit i, no flips.
  void restore_order();
  // The probability that the qubit is 1.
  [[nodiscard]] double probability_of_one(int qubit) const;
  // Keeps the part where the qubit has this value, scaled by 1/sqrt(probability), and removes the rest. Not collective.
  void collapse(int qubit, int value, double probability);
  // Exchanges |0> and |1> of a qubit. Not collective, moves nothing.
  void flip(int qubit);

  // -- looking --
  [[nodiscard]] double norm_squared() const;
  // How long reading and writing its amplitudes once takes the slowest rank while all do it, in seconds: see engine.h.
  [[nodiscard]] double pass_seconds();
  [[nodiscard]] std::vector<std::complex<double>> amplitudes(std::span<const std::uint64_t> indices) const;
  // All of them on every rank: 16 bytes times 2^qubits.
  [[nodiscard]] std::vector<std::complex<double>> gather() const;
  // Of the 2^k values of these qubits, the first least significant; k at most 24.
  [[nodiscard]] std::vector<double> probabilities(std::span<const int> qubits) const;
  // <this|other>. The other one is moved to lie as this one does. Throws BadInput where they differ in size, precision or ranks.
  [[nodiscard]] std::complex<double> inner_product(State& other);
  // 4^k numbers, row-major, the first qubit least significant; moves its qubits to local bits. k at most 12 and the local bits.
  [[nodiscard]] std::vector<std::complex<double>> reduced_density_matrix(std::span<const int> qubits);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Numbers of every rank added up in the order of ranks, on every rank.
void sum_over_ranks(const Group& group, std::span<double> numbers);
void sum_over_ranks(const Group& group, std::span<std::complex<double>> numbers);

}  // namespace onehop::quantum
