// What the parts of the door of QMP share: the state of this rank, communicators, and the memories of messages.
//
// QMP stands on a post (shared/post.h): it declares messages on each node by itself, so no channel can be opened for one.
// A communicator is some ranks and a few tags of its own. Global operations are messages from everybody to everybody.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compat/qmp.h"
#include "compat/shared/boundary.h"
#include "compat/shared/collectives.h"
#include "onehop/group.h"

namespace onehop::qmp_door {

// The tags of a communicator: its number times four, plus one of these. Messages along an axis go up or down.
enum Kind : std::uint32_t { by_number, upwards, downwards, global };

struct Topology {
  std::vector<int> sizes;
  std::vector<int> map;  // axes in the order in which they run
  std::vector<int> mine;

  void coordinates(int node, int* coords) const {
    for (const int axis : map) {
      coords[axis] = node % sizes[static_cast<std::size_t>(axis)];
      node /= sizes[static_cast<std::size_t>(axis)];
    }
  }
  [[nodiscard]] int node(const int* coords) const {
    int number = 0;
    for (auto axis = map.rbegin(); axis != map.rend(); ++axis) {
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
};

}  // namespace onehop::qmp_door

struct QMP_comm_struct {
  std::vector<int> ranks;
  int me = 0;
  int colours = 1;
  int colour = 0;
  int key = 0;
  std::uint32_t number = 0;
  std::unique_ptr<onehop::door::Circle> circle;
  std::optional<onehop::qmp_door::Topology> topology;
  // An MPI_Comm of any MPI.
  alignas(8) std::array<std::byte, 8> mpi{};
  bool has_mpi = false;

  [[nodiscard]] int size() const { return static_cast<int>(ranks.size()); }
};

struct QMP_msgmem_struct {
  std::shared_ptr<const onehop::door::Layout> layout;
  std::byte* base = nullptr;
};

namespace onehop::qmp_door {

// QMP's own arguments of the command line.
struct Arguments {
  std::vector<int> geometry;
  std::vector<int> allocated_map;
  std::vector<int> logical_map;
  std::vector<int> jobs;
};

struct Qmp {
  door::Post post;
  std::uint32_t numbers = 0;  // of communicators, used so far on this rank
  Arguments arguments;
  QMP_ictype_t interconnect = QMP_SWITCH;
  std::vector<int> subgrid;
  std::vector<std::unique_ptr<QMP_comm_struct>> communicators;
  QMP_comm_t allocated = nullptr;
  QMP_comm_t job = nullptr;
  QMP_comm_t standard = nullptr;

  explicit Qmp(const Group& group) : post(group) {}
};

// There is one between QMP_init_msg_passing and QMP_finalize_msg_passing. The two numbers outlive it, for what a
// program prints later.
extern std::unique_ptr<Qmp> the_qmp;
extern int the_node;
extern int all_nodes;

// These throw BadInput before QMP has begun, at a null pointer, and where no topology is declared.
Qmp& qmp();
QMP_comm_t standard();
QMP_comm_struct& checked(QMP_comm_t comm);
Topology& topology_of(QMP_comm_t comm);

// MPI, where the program is linked with it. MPI_Comm is a pointer in Open MPI and an int in MPICH.
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
  // The communicator of all ranks, if MPI sees as many.
  void set_world(QMP_comm_struct& comm) const;
  void set_split(const QMP_comm_struct& from, QMP_comm_struct& to) const;
};

// A communicator of these ranks, of which this one is number `me`; it lives until it is freed or QMP ends.
QMP_comm_t make_comm(std::vector<int> ranks, int me, std::uint32_t number);

// Called by all of `from`: those with the same colour, in the order of their keys.
QMP_comm_t split(QMP_comm_t from, int colour, int key);

// Without a map the axes run in their own order. Returns QMP_INVALID_ARG, having said why, if the grid does not fit.
QMP_status_t declare_topology(QMP_comm_t comm, std::span<const int> sizes, std::span<const int> map);

template <class T>
T value_at(std::span<const std::byte> bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

}  // namespace onehop::qmp_door
