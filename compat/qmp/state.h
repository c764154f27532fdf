// The state that the parts of QMP's drop-in interface share: this rank's state, communicators, and message memories.
//
// QMP runs over a mailbox (shared/mailbox.h): each node declares its messages by itself, but opening a channel is
// collective, so messages cannot have channels of their own. A communicator is a list of ranks with a few tags reserved
// for it. Global operations send a message from each rank to each other one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compat/qmp.h"
#include "compat/shared/boundary.h"
#include "compat/shared/collectives.h"
#include "compat/shared/handles.h"
#include "compat/shared/memory.h"
#include "onehop/error.h"
#include "onehop/group.h"

// Defines QMP_NAME, which does with the default communicator what QMP_comm_NAME does with its first argument.
#define QMP_OF_DEFAULT(type, name, parameters, ...)                            \
  ONEHOP_COMPAT_API type QMP_##name parameters {                               \
    return QMP_comm_##name(QMP_comm_get_default() __VA_OPT__(, ) __VA_ARGS__); \
  }

namespace onehop::compat::qmp {

// A communicator's tags are four times its number plus one of these. Messages along an axis go upwards or downwards.
enum Kind : std::uint32_t { by_number, upwards, downwards, global };

class Topology {
 public:
  std::vector<int> sizes;
  std::vector<int> map;  // the axes, fastest first
  std::vector<int> mine;

  // Both throw BadInput outside the grid.
  void coordinates(int node, int* coords) const {
    check(node, std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>()), "a node");
    for (const int axis : map) {
      coords[axis] = node % sizes[static_cast<std::size_t>(axis)];
      node /= sizes[static_cast<std::size_t>(axis)];
    }
  }
  [[nodiscard]] int node(const int* coords) const {
    int number = 0;
    for (auto axis = map.rbegin(); axis != map.rend(); ++axis) {
      check(coords[*axis], sizes[static_cast<std::size_t>(*axis)], "a coordinate");
      number = number * sizes[static_cast<std::size_t>(*axis)] + coords[*axis];
    }
    return number;
  }
  [[nodiscard]] int neighbour(int axis, int direction) const {
    std::vector<int> coords = mine;
    const auto i = static_cast<std::size_t>(axis);
    coords[i] = (coords[i] + (direction > 0 ? 1 : -1) + sizes[i]) % sizes[i];
    return node(coords.data());
  }

 private:
  static void check(int found, int behind, const char* what) {
    if (found >= 0 && found < behind) return;
    throw BadInput(std::string("expected ") + what + " from 0 to " + std::to_string(behind - 1) + ", found " +
                   std::to_string(found));
  }
};

}  // namespace onehop::compat::qmp

struct QMP_comm_struct {
  std::vector<int> ranks;
  int me = 0;
  int colors = 1;
  int color = 0;
  int key = 0;
  std::uint32_t number = 0;
  std::unique_ptr<onehop::compat::Collectives> collectives;
  std::vector<std::byte> contribution;  // of a reduction; kept, so that a sum of one number allocates nothing
  std::optional<onehop::compat::qmp::Topology> topology;
  // Holds the MPI_Comm of any MPI library.
  alignas(8) std::array<std::byte, 8> mpi{};
  bool has_mpi = false;

  [[nodiscard]] int size() const { return static_cast<int>(ranks.size()); }
};

// The layout of a message, and where it lies in memory.
struct QMP_msgmem_struct {
  std::shared_ptr<const onehop::compat::Layout> layout;
  std::byte* base = nullptr;
  bool one_array = true;
};

namespace onehop::compat::qmp {

// QMP's own command-line arguments.
struct Arguments {
  std::vector<int> geometry;
  std::vector<int> allocated_map;
  std::vector<int> logical_map;
  std::vector<int> jobs;
};

struct Qmp {
  Mailbox mailbox;
  std::uint32_t numbers = 0;  // how many communicator numbers this rank has used
  Arguments arguments;
  QMP_ictype_t interconnect = QMP_SWITCH;
  std::vector<int> subgrid;
  std::vector<QMP_comm_t> communicators;
  QMP_comm_t allocated = nullptr;
  QMP_comm_t job = nullptr;
  QMP_comm_t standard = nullptr;

  explicit Qmp(const Group& group) : mailbox(group) {}
  Qmp(const Qmp&) = delete;
  Qmp& operator=(const Qmp&) = delete;
  ~Qmp();
};

// Exists between QMP_init_msg_passing and QMP_finalize_msg_passing. The two numbers stay valid after it, for output
// that the program prints later.
extern std::unique_ptr<Qmp> the_qmp;
extern int the_node;
extern int all_nodes;

// These throw BadInput before QMP_init_msg_passing, for what is no handle, and if no topology is declared.
Qmp& qmp();
QMP_comm_struct& checked(QMP_comm_t comm);
QMP_msgmem_struct& checked(QMP_msgmem_t memory);
Topology& topology_of(QMP_comm_t comm);

// Throws BadInput if a message at `base` would leave the range of addresses, or, if it is in one array, the memory of
// QMP_allocate_memory that `base` is in.
void check_address(const QMP_msgmem_struct& message, const std::byte* base);
// Whether `base` is in memory of QMP_allocate_memory.
[[nodiscard]] bool is_allocated(const std::byte* base);

// The functions of MPI, if the program is linked with it. MPI_Comm is a pointer in Open MPI and an int in MPICH.
struct ProgramMpi {
  int (*initialised)(int*) = nullptr;
  int (*finalised)(int*) = nullptr;
  int (*init)(int*, char***, int, int*) = nullptr;
  int (*finalise)() = nullptr;
  void* split = nullptr;
  void* size = nullptr;
  void* open_mpi_world = nullptr;

  ProgramMpi();
  [[nodiscard]] bool is_there() const { return init != nullptr && initialised != nullptr && finalise != nullptr; }
  [[nodiscard]] bool is_running() const;
  // Sets comm.mpi to MPI's communicator of all ranks, if MPI has the same number of ranks.
  void set_world(QMP_comm_struct& comm) const;
  void set_split(const QMP_comm_struct& from, QMP_comm_struct& to) const;
};

// Makes a communicator of these ranks, among which this rank is number `me`. It exists until it is freed or QMP is
// finalised.
QMP_comm_t make_comm(std::vector<int> ranks, int me, std::uint32_t number);

// Makes communicators of the ranks with equal colors, ordered by key. Collective over `from`.
QMP_comm_t split(QMP_comm_t from, int color, int key);

// Without a map the axes run in their own order. If the grid does not fit, prints why and returns QMP_INVALID_ARG.
QMP_status_t declare_topology(QMP_comm_t comm, std::span<const int> sizes, std::span<const int> map);

template <class T>
T value_at(std::span<const std::byte> bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

}  // namespace onehop::compat::qmp
