// The MPI candidates with which `onehop tour` and `onehop bench` compare onehop: the same work in plain MPI, as a
// careful user of MPI would write it. They use the MPI that onehop has loaded, on its world communicator, which must
// have the group's ranks.
//
// All ranks call collective functions in the same order. The caller writes the source before each send and reads the
// result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onehop/group.h"
#include "onehop/schedule.h"

namespace onehop::measure {

// One round of a schedule between arrays, the way users of MPI do a halo. Transfers inside a rank are copied by loops.
class HaloPeer {
 public:
  virtual ~HaloPeer() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Prepares the first round of `schedule`, the whole one or this rank's part. `arrays[i]` is the memory of its array i
  // and must stay valid until the next prepare() or the end. Collective.
  virtual void prepare(const Schedule& schedule, std::span<const std::span<std::byte>> arrays) = 0;
  virtual void start() = 0;   // packs if necessary, and sends
  virtual void finish() = 0;  // waits, and unpacks if necessary
  void run() {
    start();
    finish();
  }
};

// Returns why there is no MPI to compare with, the same on every rank: there is none, or its ranks are not the group's.
// Empty if there is one. Loads and initialises MPI if necessary. Collective.
[[nodiscard]] std::string why_no_mpi_peers(const Group& group);

// The candidates whose names begin with `prefix`, each with its best settings; none if why_no_mpi_peers returns a
// reason. They are "packed, Isend/Irecv", "packed, persistent", "derived datatypes, persistent", ... Collective.
[[nodiscard]] std::vector<std::unique_ptr<HaloPeer>> mpi_halo_peers(const Group& group, std::string_view prefix = "");

enum class CollectiveKind : std::uint8_t { reduce_scatter, allgather, broadcast, all_to_all, allreduce };
[[nodiscard]] const char* mpi_name(CollectiveKind kind);  // "MPI_Allgather", ...

// An operation on arrays of float32, which must live as long: blocking, or for a sum also `persistent`. Both arrays are
// one for a broadcast, which is from rank 0, and may be one for a sum. Null if there is none. Collective.
[[nodiscard]] std::function<void()> mpi_collective(const Group& group, CollectiveKind kind, std::span<float> source,
                                                   std::span<float> result, bool persistent = false);

// MPI_COMM_WORLD, for the plain-MPI versions of solvers and for synchronising benchmarks.
class MpiWorld {
 public:
  // Throws Error if there is no MPI.
  [[nodiscard]] static std::unique_ptr<MpiWorld> make();
  virtual ~MpiWorld() = default;
  virtual void allreduce_sum(std::span<double> values) = 0;  // MPI_Allreduce, in place
  virtual void barrier() = 0;
  // "Open MPI 5.0.11"
  [[nodiscard]] virtual std::string version() const = 0;
};

}  // namespace onehop::measure
