// The benchmarks of `onehop bench`. Each is collective and returns the samples of its candidates, in µs. The library
// measures by itself, for `onehop tune` and `onehop tour` (measure/); benchmarks use its names as their own.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/native/mpi/peers.h"
#include "measure/checked_candidate.h"
#include "measure/rounds.h"
#include "onehop/channel.h"
#include "onehop/codec.h"
#include "onehop/error.h"
#include "onehop/lattice/solver.h"
#include "onehop/lattice/staggered.h"
#include "onehop/patterns.h"

namespace onehop::bench {

using namespace measure;  // NOLINT(google-build-using-namespace)

// The enumerator whose number is the place of `name` among `names`. Throws BadInput.
template <class Enum>
[[nodiscard]] Enum one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  std::string all;
  for (const std::string_view* known = names.begin(); known != names.end(); ++known) {
    if (*known == name) return static_cast<Enum>(known - names.begin());
    all += (all.empty() ? "" : ", ") + std::string(*known);
  }
  throw BadInput("expected one of " + all + ", found '" + std::string(name) + "'");
}

struct MessageOptions {
  Effort effort;
  bool peers = true;  // compare with MPI if there is one
  bool qspi = false;  // whether "ours" is the drop-in interface qspi; plain channels are then variants
  bool get = false;   // also time Receiver::get into an array (ping_pong)
  int messages = 10;  // in each direction (exchange)
};

// Between two ranks, one way; bytes = 0 is a bare signal.
[[nodiscard]] std::vector<Samples> ping_pong(const Group& group, std::int64_t bytes, const MessageOptions& options);

// Several messages in both directions at once; `bytes`, a multiple of 8, is the size of one. "onehop" reads them in the
// slot, in which they lie contiguous, and "onehop, plan" in arrays of their own.
[[nodiscard]] std::vector<Samples> exchange(const Group& group, std::int64_t bytes, const MessageOptions& options);

// The same exchange of the same arrays by other means, for example Python's plan or another library.
struct OtherCandidate {
  std::string name;
  Role role = Role::variant;
  std::function<void()> run;  // collective
  bool exact = true;          // false: received data is read but not compared, because a codec rounds it
};

struct HaloOptions {
  Effort effort;
  bool peers = true;
  // Also time packing and unpacking alone, without moving data, and between two ranks bare copies and flags.
  bool mock = true;
  // Each rank computes for about this long before each exchange; computing alone is then the speed of light.
  double compute_us = 0;
  std::vector<OtherCandidate> others;
  bool shared_arrays = false;  // also time a plan of arrays that the ranks share
};

// One round of a schedule, from array to array.
[[nodiscard]] std::vector<Samples> halo_exchange(const Group& group, const Schedule& schedule,
                                                 std::span<const std::span<std::byte>> arrays,
                                                 const HaloOptions& options);

struct PermutationOptions {
  Effort effort;
  bool peers = true;
  TransportKind transport = TransportKind::automatic;
  std::vector<std::pair<int, int>> pairs;  // of bits, disjoint; usually (local bit, bit of the rank)
  std::vector<Codec> codecs{};             // additional candidates: these codecs on complex doubles
};

// Swaps rank bits with local bits in the index of a distributed state of 2^spec.local_bits elements per rank. Elements
// are written before each run and checked after it. The speed of light is the time to read and write once every cache
// line with an element that moves.
[[nodiscard]] std::vector<Samples> permutation(const Group& group, const PermuteBitsSpec& spec,
                                               const PermutationOptions& options);

// Lengths of a rank's source and result for arrays of `bytes` bytes, which the ranks divide into blocks of whole cache
// lines: the source of an all-gather and the result of a reduce-scatter are a block.
struct CollectiveLengths {
  std::size_t source = 0;
  std::size_t result = 0;
};
[[nodiscard]] CollectiveLengths collective_lengths(CollectiveKind kind, std::int64_t bytes, int ranks);

// In every repetition, one number in each cache line of the source is written, and one in each line of the result is
// compared. From 16 KiB on, the clock runs only during the operation.
[[nodiscard]] std::vector<Samples> collective(const Group& group, CollectiveKind kind, std::int64_t bytes,
                                              const Effort& effort, bool peers,
                                              const std::vector<OtherOperation>& others);

// One pass over `bytes` bytes of normally distributed float32 numbers. The candidates are the loops that onehop chooses
// on this processor and the others that it could run; the speed of light is a memcpy.
enum class CodecStep { encode, decode, decode_add };
[[nodiscard]] std::vector<Samples> codec(const Group& group, Codec codec, CodecStep step, std::int64_t bytes,
                                         const Effort& effort);

// The work of one rank: flop, and the least bytes that it must move if nothing is in cache.
struct LatticeWork {
  double flops = 0;
  double bytes = 0;
};

// The four improvements of the staggered hopping term, each of which can be switched off.
struct DslashVariant {
  std::string name;
  Role role = Role::variant;
  bool simd = true;      // SIMD vectors of several sites; false: one site at a time
  bool put = true;       // faces written into the neighbour's memory; false: packed, MPI_Isend and MPI_Irecv, unpacked
  bool ordering = true;  // contiguous faces, interior computed while they travel; false: lexicographic, no overlap
  std::array<int, 4> grid{1, 1, 1, 1};
  bool faces = true;  // false: faces are not exchanged
};

struct DslashOptions {
  Effort effort;
  std::array<std::int64_t, 4> extents{16, 16, 16, 16};  // of the whole lattice
  bool single = false;
  int threads = 0;  // per rank; 0: one per core of the rank
  std::vector<DslashVariant> variants;
};

// One application to the sites of one parity. The speed of light is the time to read as many bytes as an application
// must at least move, with the same number of threads. Variants with MPI are left out if there is no MPI. With several
// ranks, the times for starting and finishing faces follow (FaceClock). Over any group in shared memory, as those
// below.
[[nodiscard]] std::vector<Samples> dslash(const Group& group, const DslashOptions& options);
[[nodiscard]] LatticeWork dslash_work(const DslashOptions& options, int ranks);

struct WilsonOptions {
  Effort effort;
  std::array<std::int64_t, 4> extents{16, 16, 16, 16};  // of the whole lattice
  std::array<int, 4> grid{1, 1, 1, 1};
  // half: matrices of 16-bit integers, spinors in single precision
  lattice::Precision precision = lattice::Precision::double_;
  int recon = 18;       // real numbers kept per link: 18 or 12
  bool clover = false;  // with the inverse blocks of the clover term
  int threads = 0;      // per rank; 0: one per core of the rank
};

// The same for the Wilson hopping term. The speed of light is the time to move as many bytes.
[[nodiscard]] std::vector<Samples> wilson(const Group& group, const WilsonOptions& options);
[[nodiscard]] LatticeWork wilson_work(const WilsonOptions& options);

enum class SmearingKind { fat7, asqtad, hisq };
struct SmearingOptions {
  Effort effort;
  std::array<std::int64_t, 4> extents{12, 12, 12, 12};  // of the whole lattice
  SmearingKind kind = SmearingKind::hisq;
  bool single = false;  // single-precision arithmetic
};

// One call of fat_links or hisq_links, including its allocations and preparations ("onehop"), and code for one site at
// a time on a lattice of this rank's block ("scalar code"). The speed of light is the time to read the links and write
// the result once, with as many threads. Flop are counted as the MILC code does.
[[nodiscard]] std::vector<Samples> smearing(const Group& group, const SmearingOptions& options);
[[nodiscard]] LatticeWork smearing_work(const SmearingOptions& options, int ranks);

// One pass of SU(3) algebra over arrays of `sites` sites, a multiple of 16, of each rank. The candidates are the loops
// for this processor and for others; the peer is code for one site. The speed of light of `vectors` is the slower of
// the multiply-adds alone and the loads and stores alone.
enum class Su3Operation { vectors, matrices, exponentials, reunitarise };
[[nodiscard]] std::vector<Samples> su3(const Group& group, Su3Operation operation, bool single, std::int64_t sites,
                                       const Effort& effort);

// Makes a variant of the staggered operator by name. "MPI": the same solver and kernels, but faces are packed, sent by
// Isend and Irecv and unpacked, and sums use MPI_Allreduce. "scalar": the hopping term works on one site at a time,
// without SIMD. The other parameters are those of Staggered. Throws BadInput for another name, and Error if there is no
// MPI.
[[nodiscard]] lattice::Staggered staggered_variant(std::string_view name, const Group& group,
                                                   std::vector<std::int64_t> extents, std::vector<int> grid,
                                                   std::span<const std::complex<double>> fat_links,
                                                   std::span<const std::complex<double>> long_links, int threads);

}  // namespace onehop::bench
