// `onehop bench dslash`: one application of the staggered hopping term with fat and long links to the sites of one parity, in several variants.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/rounds.h"

namespace onehop::bench {

// The four improvements, each to be had or not.
struct DslashVariant {
  std::string name;
  Role role = Role::variant;
  bool simd = true;  // vectors of several sites and the processor's instructions for them; without: one site at a time
  bool put = true;   // faces straight into the neighbour's memory; without: packed, MPI_Isend and MPI_Irecv, unpacked
  bool ordering =
      true;  // contiguous faces, the interior while they travel; without: lexicographic, all of it afterwards
  std::array<int, 4> grid{1, 1, 1, 1};
  bool faces = true;  // without: they stay where they are
};

struct DslashOptions {
  Effort effort;
  std::array<std::int64_t, 4> extents{16, 16, 16, 16};  // of the whole lattice
  bool single = false;
  int threads = 0;  // of a rank; 0: as many as it has cores
  std::vector<DslashVariant> variants;
};

// Collective over any group in shared memory. Samples are µs of one application. The speed of light is the time to read as many bytes
// as an application must at least move, with the same number of threads. Variants with MPI are left out if there is none. With
// several ranks, each variant with faces is followed by the time it spent starting and finishing them (face_clock.h).
[[nodiscard]] std::vector<Samples> dslash(const Group& group, const DslashOptions& options);

// Flop of one rank, and the bytes that it must move at least if nothing is in cache: 16 links, a vector read and one written, which is read before.
struct DslashWork {
  double flops = 0;
  double bytes = 0;
};
[[nodiscard]] DslashWork dslash_work(const DslashOptions& options, int ranks);

// GFLOP/s of one thread that does nothing but fused multiplications and additions, on this processor's widest vectors.
[[nodiscard]] double peak_gflops(bool single);

}  // namespace onehop::bench
