// `onehop bench wilson`: one application of the Wilson hopping term to the sites of one parity, against the time in which memory could move
// its bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/rounds.h"
#include "onehop/lattice/solver.h"

namespace onehop::bench {

struct WilsonBenchOptions {
  Effort effort;
  std::array<std::int64_t, 4> extents{16, 16, 16, 16};  // of the whole lattice
  std::array<int, 4> grid{1, 1, 1, 1};
  lattice::Precision precision =
      lattice::Precision::double_;  // half: matrices of 16-bit integers, spinors in single precision
  bool two_rows = false;
  bool clover = false;  // with the inverse blocks of the clover term
  int threads = 0;      // of a rank; 0: as many as it has cores
};

// Collective over any group in shared memory. Samples are µs of one application ("onehop") and of one that exchanges no faces
// ("without faces"). The speed of light is the time to move as many bytes as an application must at least move, with the same number
// of threads. With several ranks, the time spent projecting, sending and awaiting faces follows (face_clock.h), for onehop and MPI.
[[nodiscard]] std::vector<Samples> wilson(const Group& group, const WilsonBenchOptions& options);

// Flop of one rank, and the bytes that it must move at least if nothing is in cache: links, blocks, the spinors read, and those written, which
// are read before unless they are stored past the caches.
struct WilsonWork {
  double flops = 0;
  double bytes = 0;
};
[[nodiscard]] WilsonWork wilson_work(const WilsonBenchOptions& options);

}  // namespace onehop::bench
