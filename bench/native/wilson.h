// `onehop bench wilson`: one application of the Wilson hopping term to the sites of one parity, against the time in
// which memory could move its bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/native/measure.h"
#include "onehop/lattice/solver.h"

namespace onehop::bench {

struct WilsonBenchOptions {
  Effort effort;
  std::array<std::int64_t, 4> extents{16, 16, 16, 16};  // of the whole lattice
  std::array<int, 4> grid{1, 1, 1, 1};
  lattice::Precision precision =
      lattice::Precision::double_;  // half: matrices of 16-bit integers, spinors in single precision
  int recon = 18;                   // real numbers kept per link: 18 or 12
  bool clover = false;              // with the inverse blocks of the clover term
  int threads = 0;                  // per rank; 0: one per core of the rank
};

// Samples are µs of one application ("onehop") and of one without faces ("without faces"). The speed of light is the
// time to move the bytes that an application must at least move, with as many threads. With several ranks, the times to
// project, send and await faces follow (face_clock.h), for onehop and MPI. Collective over any group in shared memory.
[[nodiscard]] std::vector<Samples> wilson(const Group& group, const WilsonBenchOptions& options);

// Flops of one rank, and the least bytes that it must move if nothing is in cache: links, blocks, the spinors that are
// read, and those that are written, which are read before unless they are stored non-temporally.
struct WilsonWork {
  double flops = 0;
  double bytes = 0;
};
[[nodiscard]] WilsonWork wilson_work(const WilsonBenchOptions& options);

}  // namespace onehop::bench
