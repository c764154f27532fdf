// A state vector distributed over the ranks of a group. Each rank holds 2^qubits / ranks amplitudes, and a little
// staging memory during exchanges.
//
// The layout of a state can change with every exchange. `bits()` gives the bit of an amplitude's position that belongs
// to each qubit: bits 0 .. local_bits-1 select an amplitude inside a rank, the others are the rank's number. `flips()`
// has a bit set for each rank bit that holds the opposite of its qubit. All functions that take qubits or indices
// account for the layout. Unless stated otherwise every function is collective: every rank of the group calls it with
// the same arguments and gets the same result.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onehop/group.h"
#include "onehop/quantum/engine.h"

namespace onehop::quantum {

// The last four keep the amplitudes encoded by the codec of this name, in blocks of 16 amplitudes along the state.
// Every pass decodes them tile by tile, works in single precision, and encodes them again; exchanges carry encoded
// bytes.
enum class Precision : std::uint8_t { single_precision, double_precision, fp16, bf16, q8, q6 };

[[nodiscard]] constexpr bool is_encoded(Precision precision) noexcept {
  return precision > Precision::double_precision;
}
// "single", "double", or the name of the codec.
[[nodiscard]] std::string_view to_string(Precision precision);
// Throws BadInput for an unknown name.
[[nodiscard]] Precision precision_from_string(std::string_view name);
// 16, 8, 4 (fp16, bf16), 2.125 (q8) or 1.625 (q6).
[[nodiscard]] double bytes_per_amplitude(Precision precision);

struct StateOptions {
  int threads = 0;                               // threads per rank; 0: the rank's share of the cores available to it
  std::int64_t staging = std::int64_t{8} << 20;  // maximum bytes per partner in an exchange; small states use less
  // Not empty: the state lies in a file in this folder, which is gone when the state is, and memory holds a few parts
  // of it at a time. For one rank.
  std::string folder = {};
  // Not empty: this path in the folder followed by ".0" or ".1" is the name of that file. Both take turns and are
  // checkpoints (`State::file`); `kept` is the number of the one from which a run resumes, -1: of none.
  std::string file = {};
  int kept = -1;
  std::int64_t memory = 0;  // bytes of memory for these parts; 0: half of what is available
  // Where the amplitudes are: "cpu", or in the memory of a card, "cuda" or "hip", of which the ranks of a host take one
  // after the other, or "cuda:1" for a certain one. "processor" runs the kernels of cards on the processor, for tests.
  std::string device = "cpu";
};

// The traffic of a state in a file.
struct DiskCounters {
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
  double seconds = 0;  // in which at least one transfer was under way
};

// The memory that a state needs and the memory available on this rank's machine, in bytes.
struct MemoryNeed {
  std::int64_t per_rank = 0;   // amplitudes and staging of one rank
  std::int64_t in_all = 0;     // needed by all ranks
  std::int64_t here = 0;       // needed by the ranks on this machine
  std::int64_t available = 0;  // available to the ranks on this machine together
  [[nodiscard]] bool fits() const noexcept { return here <= available; }
};
// Computes the memory need of a state with `ranks_per_node` of its ranks on this machine; on a device, that of its
// memory. Not collective.
[[nodiscard]] MemoryNeed memory_need(int qubits, int ranks, Precision precision, int ranks_per_node,
                                     const StateOptions& options = {});

// The number of qubits of the largest state that fits into machines with `ranks_per_node` of its ranks, at most 62:
// into their memory, or the limit of a control group, or into a device as in StateOptions for each rank. Unlike
// `memory_need` it does not depend on the memory that is free now.
[[nodiscard]] int largest_state(int ranks, Precision precision, int ranks_per_node, const std::string& device = "cpu");

// The device of this rank for one as in StateOptions, for example "cuda:1" for "cuda". Throws as Device::named. Not
// collective.
[[nodiscard]] std::string device_of_rank(const Group& group, const std::string& device);

// Statistics of a state's exchanges between ranks.
struct StateCounters {
  int exchanges = 0;
  std::int64_t bytes_sent = 0;           // by this rank
  std::int64_t bytes_between_hosts = 0;  // the part of them that goes to ranks without common memory with this one

  void add(const StateCounters& more) {
    exchanges += more.exchanges;
    bytes_sent += more.bytes_sent;
    bytes_between_hosts += more.bytes_between_hosts;
  }
};

// The norm of amplitudes that a caller passes: it must be 1 within 1e-5, or is made 1; `any` checks nothing, for
// vectors that are no states.
enum class Norm { check, normalize, any };

class AmplitudeFile;
class DeviceAmplitudes;

class State {
 public:
  // Creates |0...0> with qubit i on bit i. Throws BadInput if the number of ranks is not a power of two or exceeds the
  // number of amplitudes, or of those divided by 16 if the state is encoded and there are several. Throws Error, before
  // anything is allocated, if the memory of a machine does not suffice; the
  // message says how much is needed, how much is available, and what would fit.
  State(const Group& group, int qubits, Precision precision = Precision::double_precision,
        const StateOptions& options = {});
  State(State&&) noexcept;
  State& operator=(State&&) noexcept;
  ~State();

  // -- properties (not collective) --
  [[nodiscard]] const Group& group() const noexcept;
  [[nodiscard]] int qubits() const noexcept;
  [[nodiscard]] int local_bits() const noexcept;
  [[nodiscard]] Precision precision() const noexcept;
  [[nodiscard]] std::span<const int> bits() const noexcept;
  [[nodiscard]] std::uint64_t flips() const noexcept;
  [[nodiscard]] const StateCounters& counters() const noexcept;
  [[nodiscard]] const EngineOptions& engine() const noexcept;
  // For placements on this state (PlacementOptions): at first what the function of this name returns for the group. A
  // group that is divided into parts that repeat the same run sets the same number in all of them.
  [[nodiscard]] int ranks_per_host() const noexcept;
  void set_ranks_per_host(int ranks) noexcept;
  // This rank's amplitudes. T must match the state's precision. A caller that writes them is responsible for the norm.
  // Throws BadInput for another T, and for encoded states.
  template <typename T>
  [[nodiscard]] std::span<std::complex<T>> local() const;
  // This rank's amplitudes from position `first` on. If the state is encoded, they are decoded into `memory` (T:
  // float), and `first` and `count` must be multiples of 16 or `count` all amplitudes.
  template <typename T>
  [[nodiscard]] std::span<const std::complex<T>> piece(std::uint64_t first, std::size_t count,
                                                       std::vector<std::complex<T>>& memory) const;
  // Queries take this rank's amplitudes in pieces of 2^window_bits() of them: all at once, or if the state is encoded
  // or in a file a few.
  [[nodiscard]] int window_bits() const noexcept;
  [[nodiscard]] std::uint64_t windows() const noexcept { return std::uint64_t{1} << (local_bits() - window_bits()); }
  // The index (qubit 0 least significant) of the amplitude at a position of this rank.
  [[nodiscard]] std::uint64_t index_of(std::uint64_t place) const;

  // What is kept of `count` of this rank's amplitudes from position `first` on, as bytes; for encoded states, both are
  // multiples of 16. Not collective.
  [[nodiscard]] std::vector<std::byte> kept(std::uint64_t first, std::size_t count) const;
  void set_kept(std::uint64_t first, std::size_t count, std::span<const std::byte> bytes);
  // The scale of encoded amplitudes, which is then the same on all ranks, and -log of the fidelity estimate.
  [[nodiscard]] std::array<double, 2> encoding();
  void set_encoding(double scale, double lost);

  // -- initialisation -- Sets the product of one-qubit states, one for each wire, with the wires on these bits. Not
  // collective; no communication.
  void set_product(std::span<const std::array<std::complex<double>, 2>> wires, std::span<const int> bits);
  void set_basis_state(std::uint64_t index);
  // Sets all 2^qubits amplitudes by index. Collective: every rank passes all of them. Throws BadInput if one is
  // infinite or NaN, or if the norm breaks the rule, and Mismatch if that is so on another rank, or ranks differ.
  void set_amplitudes(std::span<const std::complex<double>> amplitudes, Norm norm = Norm::check);
  // Copies the amplitudes and the layout of a state of the same size, precision and ranks; throws BadInput for others.
  // Not collective.
  void copy_from(const State& other);
  // Declares a new layout without moving any amplitudes. Not collective.
  void set_layout(std::vector<int> bits, std::uint64_t flips);
  // Divides this rank's amplitudes into parts of 2^bits, as if more ranks held them; local_bits() undoes it. Bits from
  // `bits` on may then have flips, and `set_product`, `norm_squared` and `apply_sum` compute each part by itself and
  // add parts in their order, so that their results do not depend on the number of ranks. Other functions need a state
  // that is not divided. Flips of bits below `bits` are applied to the amplitudes. Not collective.
  void set_part_bits(int bits);
  [[nodiscard]] int part_bits() const noexcept;

  // -- operations --
  // Applies gates on local bits. Not collective. `records` as in EngineOptions.
  EngineCounters apply(std::span<const LocalOperation> operations, std::vector<PassRecord>* records = nullptr);
  // Applies the operations of one pass if the state is in a file, otherwise all, and takes them out of the list.
  EngineCounters apply_some(std::vector<LocalOperation>& operations, std::vector<PassRecord>* records = nullptr);
  // Sets all amplitudes to 0. Not collective.
  void fill_zero();
  // Multiplies all amplitudes by a factor. Not collective.
  void scale(double factor);
  // Moves amplitudes so that bit i becomes bit permutation[i]. The qubits move with their bits.
  void permute(const std::vector<int>& permutation);
  // Exchanges disjoint pairs of bits.
  void exchange(std::span<const std::pair<int, int>> swaps);
  // Exchanges bits so that these qubits lie on local bits.
  void make_local(std::span<const int> qubits);
  // Exchanges local bits so that these qubits, which are on such ones, lie on the lowest ones, in their order.
  void make_lowest(std::span<const int> qubits);
  // Restores the layout with qubit i on bit i and no flips.
  void restore_order();
  // The probability that a qubit is 1.
  [[nodiscard]] double probability_of_one(int qubit) const;
  // Projects onto the subspace where the qubit has this value, and scales by 1/sqrt(probability). Not collective.
  void collapse(int qubit, int value, double probability);
  // Exchanges |0> and |1> of a qubit. Not collective; no communication.
  void flip(int qubit);

  // -- queries --
  [[nodiscard]] double norm_squared() const;
  // An estimate of the fidelity that the rounding of encoded amplitudes has left, from the changes that each pass made:
  // exp(-the sum of their squares). 1 for other states.
  [[nodiscard]] double fidelity_estimate() const;
  // Whether the state lies in a file, and the traffic of it. Not collective.
  [[nodiscard]] bool is_stored() const noexcept;
  [[nodiscard]] AmplitudeFile* file() const noexcept;  // nullptr: the state is in memory
  // The device as in StateOptions, and the amplitudes on it; nullptr: they are not on a device. Not collective.
  [[nodiscard]] const std::string& device() const noexcept;
  [[nodiscard]] DeviceAmplitudes* on_device() const noexcept;
  [[nodiscard]] DiskCounters disk() const;
  // The time in seconds that the slowest rank needs to read and write its amplitudes once while all ranks do so; see
  // engine.h.
  [[nodiscard]] double pass_seconds();
  // The amplitudes at these indices.
  [[nodiscard]] std::vector<std::complex<double>> amplitudes(std::span<const std::uint64_t> indices) const;
  // All amplitudes by index, on every rank: 16 bytes times 2^qubits.
  [[nodiscard]] std::vector<std::complex<double>> gather() const;
  // The probabilities of the 2^k values of these k qubits, the first one least significant; k is at most 24.
  [[nodiscard]] std::vector<double> probabilities(std::span<const int> qubits) const;
  // <this|other>. Moves `other` into this state's layout. Throws BadInput if the states differ in size, precision or
  // ranks.
  [[nodiscard]] std::complex<double> inner_product(State& other);
  // |<this|other>|^2, with the conditions of inner_product.
  [[nodiscard]] double fidelity(State& other);
  // The entanglement entropy between these qubits and the others, in bits. The smaller side of the cut may have at most
  // 10 qubits, and moves to local bits. Throws BadInput.
  [[nodiscard]] double entropy(std::span<const int> qubits);
  // The reduced density matrix of k qubits: 4^k numbers, row-major, the first qubit least significant. Moves the qubits
  // to local bits. k is at most 12 and at most the number of local bits.
  [[nodiscard]] std::vector<std::complex<double>> reduced_density_matrix(std::span<const int> qubits);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The number of ranks on each host, where ranks that share memory are on one host. 0 unless every host has the same
// number of ranks, a power of two, and ranks fill the hosts one after the other. Collective; the same on every rank.
[[nodiscard]] int ranks_per_host(const Group& group);

// Adds the numbers of all ranks in the order of ranks; every rank gets the sums. Collective.
void sum_over_ranks(const Group& group, std::span<double> numbers);
void sum_over_ranks(const Group& group, std::span<std::complex<double>> numbers);
// `numbers` has `count` numbers for each part of this rank, part after part. Adds those of all parts of all ranks in
// the order of parts; every rank gets the `count` sums. Collective.
[[nodiscard]] std::vector<double> sum_over_parts(const Group& group, std::span<const double> numbers,
                                                 std::size_t count);

}  // namespace onehop::quantum
