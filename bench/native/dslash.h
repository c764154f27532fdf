// `onehop bench dslash`: one application of the staggered hopping term with fat and long links to the sites of one
// parity, in several variants.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/native/measure.h"

namespace onehop::bench {

// The four improvements, each of which can be switched off.
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

// Samples are µs of one application. The speed of light is the time to read as many bytes as an application must at
// least move, with the same number of threads. Variants with MPI are left out if there is no MPI. With several ranks,
// the times for starting and finishing faces follow (face_clock.h). Collective over any group in shared memory.
[[nodiscard]] std::vector<Samples> dslash(const Group& group, const DslashOptions& options);

// Flops of one rank, and the least bytes that it must move if nothing is in cache: per site 16 links, a vector that is
// read, and a vector that is read and written.
struct DslashWork {
  double flops = 0;
  double bytes = 0;
};
[[nodiscard]] DslashWork dslash_work(const DslashOptions& options, int ranks);

}  // namespace onehop::bench
