// QMP on a post (shared/post.h): QMP declares messages on each node by itself, so no channel can be opened for one. A communicator is
// some ranks and a few tags of its own. Global operations are messages from everybody to everybody.
#include "qmp.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "onehop/group.h"
#include "shared/door.h"
#include "shared/post.h"

using onehop::BadInput;
using onehop::Group;
using onehop::door::Circle;
using onehop::door::guarded;
using onehop::door::Layout;
using onehop::door::Message;
using onehop::door::Post;

namespace {

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

}  // namespace

struct QMP_comm_struct {
  std::vector<int> ranks;
  int me = 0;
  int colours = 1;
  int colour = 0;
  int key = 0;
  std::uint32_t number = 0;
  std::unique_ptr<Circle> circle;
  std::optional<Topology> topology;
  // An MPI_Comm of any MPI.
  alignas(8) std::array<std::byte, 8> mpi{};
  bool has_mpi = false;

  [[nodiscard]] int size() const { return static_cast<int>(ranks.size()); }
};

struct QMP_mem_struct {
  void* memory = nullptr;
};

struct QMP_msgmem_struct {
  std::shared_ptr<const Layout> layout;
  std::byte* base = nullptr;
};

struct QMP_msghandle_struct {
  struct Part {
    bool sends = false;
    std::shared_ptr<const Layout> layout;
    Message message;
  };
  std::unique_ptr<Part> own;  // of a handle that is not multiple
  std::vector<std::unique_ptr<QMP_msghandle_struct>> children;
  std::vector<Part*> parts;  // all, the children's too
  bool active = false;
  bool is_child = false;
};

namespace {

// QMP's own arguments of the command line.
struct Arguments {
  std::vector<int> geometry;
  std::vector<int> allocated_map;
  std::vector<int> logical_map;
  std::vector<int> jobs;
};

struct Qmp {
  Post post;
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

std::unique_ptr<Qmp> the_qmp;
int the_node = 0;
int all_nodes = 0;
int verbosity = 0;
int profiling = 0;

Qmp& qmp() {
  if (the_qmp == nullptr) throw BadInput("expected QMP_init_msg_passing to be called before");
  return *the_qmp;
}

QMP_comm_t standard() { return qmp().standard; }

QMP_comm_struct& checked(QMP_comm_t comm) {
  if (comm == nullptr) throw BadInput("expected a communicator, found a null pointer");
  static_cast<void>(qmp());
  return *comm;
}

Topology& topology_of(QMP_comm_t comm) {
  if (!checked(comm).topology) throw BadInput("expected a communicator with a logical topology; declare one first");
  return *comm->topology;
}

// MPI, where the program is linked with it. MPI_Comm is a pointer in Open MPI and an int in MPICH.
struct ProgramMpi {
  int (*initialised)(int*) = nullptr;
  int (*finalised)(int*) = nullptr;
  int (*init)(int*, char***, int, int*) = nullptr;
  int (*finalise)() = nullptr;
  void* split = nullptr;
  void* size = nullptr;
  void* open_mpi_world = nullptr;

  ProgramMpi() {
    load(initialised, "MPI_Initialized");
    load(finalised, "MPI_Finalized");
    load(init, "MPI_Init_thread");
    load(finalise, "MPI_Finalize");
    load(split, "MPI_Comm_split");
    load(size, "MPI_Comm_size");
    load(open_mpi_world, "ompi_mpi_comm_world");
  }
  template <class Pointer>
  static void load(Pointer& pointer, const char* name) {
    pointer = reinterpret_cast<Pointer>(::dlsym(RTLD_DEFAULT, name));
  }
  [[nodiscard]] bool is_there() const { return init != nullptr && initialised != nullptr && finalise != nullptr; }
  [[nodiscard]] bool is_running() const {
    int begun = 0;
    int ended = 0;
    if (!is_there() || split == nullptr || size == nullptr) return false;
    initialised(&begun);
    finalised(&ended);
    return begun != 0 && ended == 0;
  }
  // The communicator of all ranks, if MPI sees as many.
  void set_world(QMP_comm_struct& comm) const {
    constexpr int mpich_world = 0x44000000;
    if (!is_running()) return;
    int ranks = 0;
    if (open_mpi_world != nullptr) {
      std::memcpy(comm.mpi.data(), static_cast<const void*>(&open_mpi_world), sizeof open_mpi_world);
      reinterpret_cast<int (*)(void*, int*)>(size)(open_mpi_world, &ranks);
    } else {
      std::memcpy(comm.mpi.data(), &mpich_world, sizeof mpich_world);
      reinterpret_cast<int (*)(int, int*)>(size)(mpich_world, &ranks);
    }
    comm.has_mpi = ranks == comm.size();
  }
  void set_split(const QMP_comm_struct& from, QMP_comm_struct& to) const {
    if (!from.has_mpi || !is_running()) return;
    if (open_mpi_world != nullptr) {
      void* whole = nullptr;
      std::memcpy(static_cast<void*>(&whole), from.mpi.data(), sizeof whole);
      reinterpret_cast<int (*)(void*, int, int, void*)>(split)(whole, to.colour, to.key, to.mpi.data());
    } else {
      int whole = 0;
      std::memcpy(&whole, from.mpi.data(), sizeof whole);
      reinterpret_cast<int (*)(int, int, int, void*)>(split)(whole, to.colour, to.key, to.mpi.data());
    }
    to.has_mpi = true;
  }
};

template <class T>
T value_at(std::span<const std::byte> bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

// Every element becomes op(... op(op(first node's, second's), third's) ...).
template <class T, class Op>
QMP_status_t reduce(QMP_comm_t comm, T* values, int length, const Op& op) {
  const auto n = static_cast<std::size_t>(length);
  const std::span<const std::byte> all = checked(comm).circle->gather(std::as_bytes(std::span(values, n)));
  for (std::size_t i = 0; i < n; ++i) values[i] = value_at<T>(all, i);
  for (std::size_t node = 1; node < comm->ranks.size(); ++node) {
    for (std::size_t i = 0; i < n; ++i) values[i] = op(values[i], value_at<T>(all, node * n + i));
  }
  return QMP_SUCCESS;
}

// The same with one number, folded in another type.
template <class Wide, class T, class Op>
QMP_status_t reduce_as(QMP_comm_t comm, T* value, const Op& op) {
  Wide wide = static_cast<Wide>(*value);
  reduce(comm, &wide, 1, op);
  *value = static_cast<T>(wide);
  return QMP_SUCCESS;
}

constexpr auto plus = [](auto a, auto b) { return a + b; };
constexpr auto larger = [](auto a, auto b) { return std::max(a, b); };
constexpr auto smaller = [](auto a, auto b) { return std::min(a, b); };

QMP_comm_t make_comm(std::vector<int> ranks, int me, std::uint32_t number) {
  auto comm = std::make_unique<QMP_comm_struct>();
  comm->ranks = ranks;
  comm->me = me;
  comm->number = number;
  comm->circle = std::make_unique<Circle>(qmp().post, std::move(ranks), me, 4 * number + global);
  return qmp().communicators.emplace_back(std::move(comm)).get();
}

QMP_comm_t split(QMP_comm_t from, int colour, int key) {
  struct Wish {
    int colour;
    int key;
    int node;
    std::uint32_t numbers;
  };
  if (colour < 0) throw BadInput("expected a colour of 0 or more, found " + std::to_string(colour));
  const Wish mine{colour, key, checked(from).me, qmp().numbers};
  const std::span<const std::byte> all = from->circle->gather(std::as_bytes(std::span(&mine, 1)));
  std::vector<Wish> together;
  std::set<int> colours;
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < from->ranks.size(); ++i) {
    const Wish wish = value_at<Wish>(all, i);
    if (wish.colour == colour) together.push_back(wish);
    colours.insert(wish.colour);
    number = std::max(number, wish.numbers);
  }
  std::ranges::sort(together, {}, [](const Wish& wish) { return std::pair(wish.key, wish.node); });
  std::vector<int> ranks;
  int me = 0;
  for (const Wish& wish : together) {
    if (wish.node == from->me) me = static_cast<int>(ranks.size());
    ranks.push_back(from->ranks[static_cast<std::size_t>(wish.node)]);
  }
  qmp().numbers = number + 1;
  QMP_comm_t made = make_comm(std::move(ranks), me, number + 1);
  made->colours = static_cast<int>(colours.size());
  made->colour = colour;
  made->key = key;
  ProgramMpi().set_split(*from, *made);
  return made;
}

QMP_status_t complain(QMP_status_t status, const std::string& why) {
  QMP_error("%s", why.c_str());
  return status;
}

QMP_status_t declare_topology(QMP_comm_t comm, std::span<const int> sizes, std::span<const int> map) {
  if (checked(comm).topology) throw BadInput("expected a communicator without a topology, found one that has it");
  if (sizes.empty()) return QMP_SUCCESS;
  int nodes = 1;
  for (const int size : sizes) {
    if (size < 1)
      return complain(QMP_INVALID_ARG, "logical topology: expected sizes of 1 or more, found " + std::to_string(size));
    nodes *= size;
  }
  if (nodes != comm->size()) {
    return complain(QMP_INVALID_ARG, "logical topology: expected a grid of " + std::to_string(comm->size()) +
                                         " nodes, found one of " + std::to_string(nodes));
  }
  Topology topology{{sizes.begin(), sizes.end()}, {map.begin(), map.end()}, std::vector<int>(sizes.size())};
  if (map.empty()) {
    topology.map.resize(sizes.size());
    std::iota(topology.map.begin(), topology.map.end(), 0);
  }
  std::vector<int> axes = topology.map;
  std::ranges::sort(axes);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes.size() != sizes.size() || axes[i] != static_cast<int>(i)) {
      throw BadInput("expected a map that names each of " + std::to_string(sizes.size()) + " axes once");
    }
  }
  topology.coordinates(comm->me, topology.mine.data());
  comm->topology = std::move(topology);
  return QMP_SUCCESS;
}

QMP_status_t declare_topology(QMP_comm_t comm, const int* dims, int ndim, const int* map, int mapdim) {
  if (ndim < 0 || mapdim < 0)
    return complain(QMP_INVALID_ARG,
                    "logical topology: expected a number of dimensions, found " + std::to_string(ndim));
  return declare_topology(comm, std::span(dims, static_cast<std::size_t>(ndim)),
                          std::span(map, static_cast<std::size_t>(map == nullptr ? 0 : mapdim)));
}

// Takes `name` and the numbers behind it out of the arguments.
std::vector<int> take_argument(int& argc, char** argv, std::string_view name) {
  std::vector<int> numbers;
  for (int i = 1; i < argc; ++i) {
    if (argv[i] != name) continue;
    int end = i + 1;
    while (end < argc && std::isdigit(static_cast<unsigned char>(argv[end][0])) != 0) {
      numbers.push_back(std::atoi(argv[end++]));
    }
    for (int k = end; k <= argc; ++k) argv[k - (end - i)] = argv[k];
    argc -= end - i;
  }
  return numbers;
}

int job_of(const Qmp& state) {
  const std::vector<int>& jobs = state.arguments.jobs;
  if (jobs.empty()) return 0;
  const QMP_comm_struct& all = *state.allocated;
  if (!all.topology) return all.me * jobs.front() / all.size();
  int job = 0;
  for (std::size_t axis = jobs.size(); axis-- > 0;) {
    const int size = all.topology->sizes.at(axis);
    if (jobs[axis] < 1 || size % jobs[axis] != 0) {
      throw BadInput("-qmp-job: expected divisors of the geometry, found " + std::to_string(jobs[axis]));
    }
    job = job * jobs[axis] + all.topology->mine[axis] * jobs[axis] / size;
  }
  return job;
}

void set_up(int& argc, char** argv) {
  Qmp& state = *the_qmp;
  state.arguments.geometry = take_argument(argc, argv, "-qmp-geom");
  state.arguments.allocated_map = take_argument(argc, argv, "-qmp-alloc-map");
  state.arguments.logical_map = take_argument(argc, argv, "-qmp-logic-map");
  state.arguments.jobs = take_argument(argc, argv, "-qmp-job");
  std::vector<int> everybody(static_cast<std::size_t>(state.post.size()));
  std::iota(everybody.begin(), everybody.end(), 0);
  state.allocated = make_comm(everybody, state.post.rank(), 0);
  state.allocated->key = state.post.rank();
  ProgramMpi().set_world(*state.allocated);
  if (declare_topology(state.allocated, state.arguments.geometry, state.arguments.allocated_map) != QMP_SUCCESS) {
    throw BadInput("-qmp-geom does not fit the number of nodes");
  }
  if (state.allocated->topology) state.interconnect = QMP_MESH;
  state.job = split(state.allocated, job_of(state), 0);
  if (!state.arguments.jobs.empty() && state.allocated->topology) {
    std::vector<int> sizes = state.allocated->topology->sizes;
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] /= state.arguments.jobs.at(i);
    declare_topology(state.job, sizes, state.arguments.allocated_map);
  }
  state.standard = split(state.job, 0, 0);
}

// Cuts a lattice for `nodes` nodes: prime by prime, the largest first, the axis with the longest pieces that it divides;
// among equals one that is cut already.
std::optional<std::vector<int>> cut(std::span<const int> lattice, int nodes) {
  std::vector<int> pieces(lattice.begin(), lattice.end());
  std::vector<int> cuts(lattice.size(), 1);
  std::vector<int> primes;
  for (int prime = 2; nodes > 1; nodes % prime == 0 ? static_cast<void>(nodes /= prime) : static_cast<void>(++prime)) {
    if (nodes % prime == 0) primes.push_back(prime);
  }
  for (auto prime = primes.rbegin(); prime != primes.rend(); ++prime) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i] % *prime != 0) continue;
      if (!best || pieces[i] > pieces[*best] || (pieces[i] == pieces[*best] && cuts[*best] == 1)) best = i;
    }
    if (!best) return std::nullopt;
    pieces[*best] /= *prime;
    cuts[*best] *= *prime;
  }
  return cuts;
}

QMP_status_t lay_out(std::span<const int> lattice) {
  Qmp& state = qmp();
  if (state.interconnect != QMP_SWITCH && !state.standard->topology && state.job->topology) {
    declare_topology(state.standard, state.job->topology->sizes, state.arguments.logical_map);
  }
  if (!state.standard->topology) {
    const auto cuts = cut(lattice, state.standard->size());
    if (!cuts) {
      return complain(QMP_ERROR, "layout: expected a lattice that " + std::to_string(state.standard->size()) +
                                     " nodes can share equally, found one that they cannot");
    }
    const QMP_status_t status = declare_topology(state.standard, *cuts, state.arguments.logical_map);
    if (status != QMP_SUCCESS) return status;
  }
  const std::vector<int>& sizes = state.standard->topology->sizes;
  if (lattice.size() < sizes.size()) return complain(QMP_ERROR, "layout: the lattice has fewer axes than the topology");
  std::vector<int> subgrid(lattice.begin(), lattice.end());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (lattice[i] % sizes[i] != 0) return complain(QMP_ERROR, "layout: the topology does not divide the lattice");
    subgrid[i] /= sizes[i];
  }
  state.subgrid = std::move(subgrid);
  return QMP_SUCCESS;
}

QMP_msgmem_t make_memory(const void* base, Layout layout) {
  return new QMP_msgmem_struct{std::make_shared<const Layout>(std::move(layout)),
                               static_cast<std::byte*>(const_cast<void*>(base))};
}

void add_blocks(Layout& layout, std::ptrdiff_t at, std::size_t bytes, int blocks, std::ptrdiff_t stride) {
  for (int i = 0; i < blocks; ++i) layout.add(at + i * stride, bytes);
}

QMP_msghandle_t declare(QMP_comm_t comm, QMP_msgmem_t memory, int node, bool sends, Kind kind) {
  if (memory == nullptr) throw BadInput("expected a message memory, found a null pointer");
  if (node < 0 || node >= checked(comm).size()) {
    throw BadInput("expected a node from 0 to " + std::to_string(comm->size() - 1) + ", found " + std::to_string(node));
  }
  auto handle = std::make_unique<QMP_msghandle_struct>();
  handle->own = std::make_unique<QMP_msghandle_struct::Part>();
  handle->own->sends = sends;
  handle->own->layout = memory->layout;
  Message& message = handle->own->message;
  message.peer = comm->ranks[static_cast<std::size_t>(node)];
  message.tag = 4 * comm->number + kind;
  message.layout = handle->own->layout.get();
  message.base = memory->base;
  handle->parts = {handle->own.get()};
  return handle.release();
}

QMP_msghandle_t declare_relative(QMP_comm_t comm, QMP_msgmem_t memory, int axis, int direction, bool sends) {
  const Topology& topology = topology_of(comm);
  if (axis < 0 || axis >= static_cast<int>(topology.sizes.size())) {
    throw BadInput("expected an axis from 0 to " + std::to_string(topology.sizes.size() - 1) + ", found " +
                   std::to_string(axis));
  }
  // What comes from above was sent downwards.
  const Kind kind = (direction > 0) == sends ? upwards : downwards;
  return declare(comm, memory, topology.neighbour(axis, direction), sends, kind);
}

QMP_msghandle_struct& checked(QMP_msghandle_t handle) {
  if (handle == nullptr) throw BadInput("expected a message handle, found a null pointer");
  if (handle->is_child) throw BadInput("expected a handle by itself, found one that is part of a multiple one");
  return *handle;
}

QMP_msghandle_t declare_multiple(std::span<const QMP_msghandle_t> handles) {
  for (const QMP_msghandle_t handle : handles) {
    if (checked(handle).active) throw BadInput("a handle that is under way cannot become part of another");
  }
  auto made = std::make_unique<QMP_msghandle_struct>();
  for (const QMP_msghandle_t handle : handles) {
    made->parts.insert(made->parts.end(), handle->parts.begin(), handle->parts.end());
    handle->is_child = true;
    made->children.emplace_back(handle);
  }
  return made.release();
}

void change_addresses(QMP_msghandle_t handle, std::span<void* const> addresses, bool multiple) {
  if (checked(handle).active) throw BadInput("the addresses of a handle that is under way cannot be changed");
  if ((handle->own == nullptr) != multiple || handle->parts.size() != addresses.size()) {
    throw BadInput("expected a handle of " + std::to_string(addresses.size()) + " message(s), found one of " +
                   std::to_string(handle->parts.size()));
  }
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    handle->parts[i]->message.base = static_cast<std::byte*>(addresses[i]);
  }
}

void start(QMP_msghandle_t handle) {
  if (checked(handle).active) throw BadInput("expected a handle that is not under way; wait for it first");
  Post& post = qmp().post;
  handle->active = true;
  for (QMP_msghandle_struct::Part* part : handle->parts) {
    part->sends ? post.send(part->message) : post.receive(part->message);
  }
}

void wait(QMP_msghandle_t handle) {
  if (!checked(handle).active) return;
  qmp().post.wait([&parts = handle->parts, next = std::size_t{0}]() mutable {
    while (next < parts.size() && !parts[next]->message.active()) ++next;
    return next < parts.size() ? parts[next]->message.peer : -1;
  });
  handle->active = false;
}

bool is_complete(QMP_msghandle_t handle) {
  if (!checked(handle).active) return true;
  qmp().post.progress();
  handle->active =
      std::ranges::any_of(handle->parts, [](const QMP_msghandle_struct::Part* part) { return part->message.active(); });
  return !handle->active;
}

int print(FILE* stream, const char* what, const char* format, va_list arguments) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  std::array<char, 1024> text{};
  const int length = std::vsnprintf(text.data(), text.size(), format, arguments);
  std::fprintf(stream, "QMP m%d,n%d@%s%s: %s\n", the_node, all_nodes, host.data(), what, text.data());
  return length;
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

// Beginning and end.

ONEHOP_DOOR QMP_status_t QMP_init_msg_passing(int* argc, char*** argv, QMP_thread_level_t required,
                                              QMP_thread_level_t* provided) {
  return guarded(__func__, [&] {
    if (the_qmp != nullptr) throw BadInput("expected to be called once, found to be initialised already");
    *provided = std::min(required, QMP_THREAD_SERIALIZED);
    const ProgramMpi mpi;
    int begun = 0;
    int level = 0;
    if (mpi.is_there()) mpi.initialised(&begun);
    if (mpi.is_there() && begun == 0) mpi.init(argc, argv, static_cast<int>(required), &level);
    the_qmp = std::make_unique<Qmp>(Group::world());
    the_node = the_qmp->post.rank();
    all_nodes = the_qmp->post.size();
    set_up(*argc, *argv);
    return QMP_SUCCESS;
  });
}

ONEHOP_DOOR QMP_bool_t QMP_is_initialized() { return the_qmp != nullptr ? QMP_TRUE : QMP_FALSE; }

ONEHOP_DOOR void QMP_finalize_msg_passing() {
  guarded(__func__, [] {
    the_qmp.reset();
    Group::close_world();
    const ProgramMpi mpi;
    if (mpi.is_running()) mpi.finalise();
  });
}

ONEHOP_DOOR void QMP_abort(int error_code) {
  onehop::door::end_program(__func__, "rank " + std::to_string(the_node) + ": error " + std::to_string(error_code),
                            error_code);
}

ONEHOP_DOOR void QMP_abort_string(int error_code, char* message) {
  onehop::door::end_program(__func__, "rank " + std::to_string(the_node) + ": " + message, error_code);
}

// Communicators.

ONEHOP_DOOR QMP_comm_t QMP_comm_get_allocated() {
  return guarded(__func__, [] { return qmp().allocated; });
}
ONEHOP_DOOR QMP_status_t QMP_comm_set_allocated(QMP_comm_t comm) {
  return guarded(__func__, [&] { return qmp().allocated = &checked(comm), QMP_SUCCESS; });
}
ONEHOP_DOOR QMP_comm_t QMP_comm_get_job() {
  return guarded(__func__, [] { return qmp().job; });
}
ONEHOP_DOOR QMP_status_t QMP_comm_set_job(QMP_comm_t comm) {
  return guarded(__func__, [&] { return qmp().job = &checked(comm), QMP_SUCCESS; });
}
ONEHOP_DOOR QMP_comm_t QMP_comm_get_default() {
  return guarded(__func__, [] { return standard(); });
}
ONEHOP_DOOR QMP_status_t QMP_comm_set_default(QMP_comm_t comm) {
  return guarded(__func__, [&] { return qmp().standard = &checked(comm), QMP_SUCCESS; });
}
ONEHOP_DOOR QMP_status_t QMP_comm_split(QMP_comm_t comm, int color, int key, QMP_comm_t* newcomm) {
  return guarded(__func__, [&] { return *newcomm = split(comm, color, key), QMP_SUCCESS; });
}
ONEHOP_DOOR QMP_status_t QMP_comm_free(QMP_comm_t comm) {
  return guarded(__func__, [&] {
    std::erase_if(qmp().communicators, [&](const auto& each) { return each.get() == &checked(comm); });
    return QMP_SUCCESS;
  });
}
ONEHOP_DOOR int QMP_comm_get_number_of_colors(QMP_comm_t comm) {
  return guarded(__func__, [&] { return checked(comm).colours; });
}
ONEHOP_DOOR int QMP_comm_get_color(QMP_comm_t comm) {
  return guarded(__func__, [&] { return checked(comm).colour; });
}
ONEHOP_DOOR int QMP_comm_get_key(QMP_comm_t comm) {
  return guarded(__func__, [&] { return checked(comm).key; });
}
ONEHOP_DOOR QMP_status_t QMP_get_hidden_comm(QMP_comm_t comm, void** hiddencomm) {
  return guarded(__func__, [&] {
    *hiddencomm = checked(comm).has_mpi ? comm->mpi.data() : nullptr;
    return comm->has_mpi ? QMP_SUCCESS : QMP_NOTSUPPORTED;
  });
}
ONEHOP_DOOR QMP_status_t QMP_get_mpi_comm(QMP_comm_t comm, void** mpicomm) {
  return QMP_get_hidden_comm(comm, mpicomm);
}

// The machine.

ONEHOP_DOOR QMP_ictype_t QMP_get_msg_passing_type() {
  return guarded(__func__, [] { return qmp().interconnect; });
}
ONEHOP_DOOR int QMP_comm_get_number_of_nodes(QMP_comm_t comm) {
  return guarded(__func__, [&] { return checked(comm).size(); });
}
ONEHOP_DOOR int QMP_get_number_of_nodes() { return QMP_comm_get_number_of_nodes(QMP_comm_get_default()); }
ONEHOP_DOOR int QMP_comm_get_node_number(QMP_comm_t comm) {
  return guarded(__func__, [&] { return checked(comm).me; });
}
ONEHOP_DOOR int QMP_get_node_number() { return QMP_comm_get_node_number(QMP_comm_get_default()); }
ONEHOP_DOOR int QMP_get_number_of_jobs() { return QMP_comm_get_number_of_colors(QMP_comm_get_job()); }
ONEHOP_DOOR int QMP_get_job_number() { return QMP_comm_get_color(QMP_comm_get_job()); }
ONEHOP_DOOR int QMP_get_number_of_job_geometry_dimensions() {
  return QMP_comm_get_logical_number_of_dimensions(QMP_comm_get_job());
}
ONEHOP_DOOR const int* QMP_get_job_geometry() { return QMP_comm_get_logical_dimensions(QMP_comm_get_job()); }
ONEHOP_DOOR QMP_bool_t QMP_comm_is_primary_node(QMP_comm_t comm) {
  return QMP_comm_get_node_number(comm) == 0 ? QMP_TRUE : QMP_FALSE;
}
ONEHOP_DOOR QMP_bool_t QMP_is_primary_node() { return QMP_comm_is_primary_node(QMP_comm_get_default()); }
ONEHOP_DOOR int QMP_get_allocated_number_of_dimensions() {
  return QMP_comm_get_logical_number_of_dimensions(QMP_comm_get_allocated());
}
ONEHOP_DOOR const int* QMP_get_allocated_dimensions() {
  return QMP_comm_get_logical_dimensions(QMP_comm_get_allocated());
}
ONEHOP_DOOR const int* QMP_get_allocated_coordinates() {
  return QMP_comm_get_logical_coordinates(QMP_comm_get_allocated());
}
ONEHOP_DOOR int QMP_io_node(int node) { return node; }
ONEHOP_DOOR int QMP_master_io_node() { return 0; }

// The logical topology.

ONEHOP_DOOR QMP_status_t QMP_comm_declare_logical_topology_map(QMP_comm_t comm, const int dims[], int ndim,
                                                               const int map[], int mapdim) {
  return guarded(__func__, [&] { return declare_topology(comm, dims, ndim, map, mapdim); });
}
ONEHOP_DOOR QMP_status_t QMP_comm_declare_logical_topology(QMP_comm_t comm, const int dims[], int ndim) {
  return QMP_comm_declare_logical_topology_map(comm, dims, ndim, nullptr, 0);
}
ONEHOP_DOOR QMP_status_t QMP_declare_logical_topology_map(const int dims[], int ndim, const int map[], int mapdim) {
  return QMP_comm_declare_logical_topology_map(QMP_comm_get_default(), dims, ndim, map, mapdim);
}
ONEHOP_DOOR QMP_status_t QMP_declare_logical_topology(const int dims[], int ndim) {
  return guarded(__func__, [&] {
    const std::vector<int>& map = qmp().arguments.logical_map;
    return declare_topology(standard(), dims, ndim, map.data(), static_cast<int>(map.size()));
  });
}
ONEHOP_DOOR QMP_bool_t QMP_comm_logical_topology_is_declared(QMP_comm_t comm) {
  return guarded(__func__, [&] { return checked(comm).topology ? QMP_TRUE : QMP_FALSE; });
}
ONEHOP_DOOR QMP_bool_t QMP_logical_topology_is_declared() {
  return QMP_comm_logical_topology_is_declared(QMP_comm_get_default());
}
ONEHOP_DOOR int QMP_comm_get_logical_number_of_dimensions(QMP_comm_t comm) {
  return guarded(__func__, [&] { return checked(comm).topology ? static_cast<int>(comm->topology->sizes.size()) : 0; });
}
ONEHOP_DOOR int QMP_get_logical_number_of_dimensions() {
  return QMP_comm_get_logical_number_of_dimensions(QMP_comm_get_default());
}
ONEHOP_DOOR const int* QMP_comm_get_logical_dimensions(QMP_comm_t comm) {
  return guarded(__func__,
                 [&]() -> const int* { return checked(comm).topology ? comm->topology->sizes.data() : nullptr; });
}
ONEHOP_DOOR const int* QMP_get_logical_dimensions() { return QMP_comm_get_logical_dimensions(QMP_comm_get_default()); }
ONEHOP_DOOR const int* QMP_comm_get_logical_coordinates(QMP_comm_t comm) {
  return guarded(__func__, [&]() -> const int* { return topology_of(comm).mine.data(); });
}
ONEHOP_DOOR const int* QMP_get_logical_coordinates() {
  return QMP_comm_get_logical_coordinates(QMP_comm_get_default());
}
ONEHOP_DOOR void QMP_comm_get_logical_coordinates_from2(QMP_comm_t comm, int coords[], int node) {
  guarded(__func__, [&] { topology_of(comm).coordinates(node, coords); });
}
ONEHOP_DOOR int* QMP_comm_get_logical_coordinates_from(QMP_comm_t comm, int node) {
  auto* coords = static_cast<int*>(
      std::calloc(static_cast<std::size_t>(QMP_comm_get_logical_number_of_dimensions(comm)) + 1, sizeof(int)));
  QMP_comm_get_logical_coordinates_from2(comm, coords, node);
  return coords;
}
ONEHOP_DOOR int* QMP_get_logical_coordinates_from(int node) {
  return QMP_comm_get_logical_coordinates_from(QMP_comm_get_default(), node);
}
ONEHOP_DOOR void QMP_get_logical_coordinates_from2(int coords[], int node) {
  QMP_comm_get_logical_coordinates_from2(QMP_comm_get_default(), coords, node);
}
ONEHOP_DOOR int QMP_comm_get_node_number_from(QMP_comm_t comm, const int coordinates[]) {
  return guarded(__func__, [&] { return topology_of(comm).node(coordinates); });
}
ONEHOP_DOOR int QMP_get_node_number_from(const int coordinates[]) {
  return QMP_comm_get_node_number_from(QMP_comm_get_default(), coordinates);
}
ONEHOP_DOOR QMP_status_t QMP_layout_grid(const int dimensions[], int ndims) {
  return guarded(__func__, [&] { return lay_out({dimensions, static_cast<std::size_t>(std::max(ndims, 0))}); });
}
ONEHOP_DOOR const int* QMP_get_subgrid_dimensions() {
  return guarded(__func__, []() -> const int* { return qmp().subgrid.data(); });
}
ONEHOP_DOOR int QMP_get_number_of_subgrid_sites() {
  return guarded(__func__, [] {
    const std::vector<int>& sizes = qmp().subgrid;
    return sizes.empty() ? 0 : std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>());
  });
}

// Memory, and where a message lies in it.

ONEHOP_DOOR QMP_mem_t* QMP_allocate_aligned_memory(size_t nbytes, size_t alignment, int /*flags*/) {
  void* memory = nullptr;
  if (posix_memalign(&memory, std::max(alignment, sizeof(void*)), std::max<size_t>(nbytes, 1)) != 0) return nullptr;
  return new QMP_mem_struct{memory};
}
ONEHOP_DOOR QMP_mem_t* QMP_allocate_memory(size_t nbytes) {
  return QMP_allocate_aligned_memory(nbytes, QMP_ALIGN_DEFAULT, QMP_MEM_DEFAULT);
}
ONEHOP_DOOR void* QMP_get_memory_pointer(QMP_mem_t* mem) { return mem->memory; }
ONEHOP_DOOR void QMP_free_memory(QMP_mem_t* mem) {
  if (mem != nullptr) std::free(mem->memory);
  delete mem;
}
ONEHOP_DOOR QMP_msgmem_t QMP_declare_msgmem(const void* mem, size_t nbytes) {
  return guarded(__func__, [&] { return make_memory(mem, Layout(nbytes)); });
}
ONEHOP_DOOR QMP_msgmem_t QMP_declare_strided_msgmem(void* base, size_t blksize, int nblocks, ptrdiff_t stride) {
  return guarded(__func__, [&] {
    Layout layout;
    add_blocks(layout, 0, blksize, nblocks, stride);
    return make_memory(base, std::move(layout));
  });
}
ONEHOP_DOOR QMP_msgmem_t QMP_declare_strided_array_msgmem(void* base[], size_t blksize[], int nblocks[],
                                                          ptrdiff_t stride[], int num) {
  return guarded(__func__, [&] {
    Layout layout;
    for (int i = 0; i < num; ++i) {
      add_blocks(layout, static_cast<char*>(base[i]) - static_cast<char*>(base[0]), blksize[i], nblocks[i], stride[i]);
    }
    return make_memory(num > 0 ? base[0] : nullptr, std::move(layout));
  });
}
ONEHOP_DOOR QMP_msgmem_t QMP_declare_indexed_msgmem(void* base, int blocklen[], int index[], int elemsize, int count) {
  return guarded(__func__, [&] {
    Layout layout;
    for (int i = 0; i < count; ++i) {
      layout.add(std::ptrdiff_t{index[i]} * elemsize,
                 static_cast<std::size_t>(blocklen[i]) * static_cast<std::size_t>(elemsize));
    }
    return make_memory(base, std::move(layout));
  });
}
ONEHOP_DOOR void QMP_free_msgmem(QMP_msgmem_t m) {
  guarded(__func__, [&] {
    if (m == nullptr) throw BadInput("expected a message memory, found a null pointer");
    delete m;
  });
}

// Messages.

ONEHOP_DOOR QMP_msghandle_t QMP_comm_declare_receive_relative(QMP_comm_t comm, QMP_msgmem_t m, int axis, int dir,
                                                              int /*priority*/) {
  return guarded(__func__, [&] { return declare_relative(comm, m, axis, dir, false); });
}
ONEHOP_DOOR QMP_msghandle_t QMP_declare_receive_relative(QMP_msgmem_t m, int axis, int dir, int priority) {
  return QMP_comm_declare_receive_relative(QMP_comm_get_default(), m, axis, dir, priority);
}
ONEHOP_DOOR QMP_msghandle_t QMP_comm_declare_send_relative(QMP_comm_t comm, QMP_msgmem_t m, int axis, int dir,
                                                           int /*priority*/) {
  return guarded(__func__, [&] { return declare_relative(comm, m, axis, dir, true); });
}
ONEHOP_DOOR QMP_msghandle_t QMP_declare_send_relative(QMP_msgmem_t m, int axis, int dir, int priority) {
  return QMP_comm_declare_send_relative(QMP_comm_get_default(), m, axis, dir, priority);
}
ONEHOP_DOOR QMP_msghandle_t QMP_comm_declare_send_to(QMP_comm_t comm, QMP_msgmem_t m, int rem_node_rank,
                                                     int /*priority*/) {
  return guarded(__func__, [&] { return declare(comm, m, rem_node_rank, true, by_number); });
}
ONEHOP_DOOR QMP_msghandle_t QMP_declare_send_to(QMP_msgmem_t m, int rem_node_rank, int priority) {
  return QMP_comm_declare_send_to(QMP_comm_get_default(), m, rem_node_rank, priority);
}
ONEHOP_DOOR QMP_msghandle_t QMP_comm_declare_receive_from(QMP_comm_t comm, QMP_msgmem_t m, int rem_node_rank,
                                                          int /*priority*/) {
  return guarded(__func__, [&] { return declare(comm, m, rem_node_rank, false, by_number); });
}
ONEHOP_DOOR QMP_msghandle_t QMP_declare_receive_from(QMP_msgmem_t m, int rem_node_rank, int priority) {
  return QMP_comm_declare_receive_from(QMP_comm_get_default(), m, rem_node_rank, priority);
}
ONEHOP_DOOR QMP_status_t QMP_change_address(QMP_msghandle_t msg, void* addr) {
  return guarded(__func__, [&] { return change_addresses(msg, {&addr, 1}, false), QMP_SUCCESS; });
}
ONEHOP_DOOR QMP_status_t QMP_change_address_multiple(QMP_msghandle_t msg, void* addr[], int naddr) {
  return guarded(__func__, [&] {
    change_addresses(msg, {addr, static_cast<std::size_t>(naddr)}, true);
    return QMP_SUCCESS;
  });
}
ONEHOP_DOOR QMP_msghandle_t QMP_declare_multiple(QMP_msghandle_t msgh[], int num) {
  return guarded(__func__, [&] { return declare_multiple({msgh, static_cast<std::size_t>(num)}); });
}
ONEHOP_DOOR QMP_msghandle_t QMP_declare_send_recv_pairs(QMP_msghandle_t msgh[], int num) {
  return guarded(__func__, [&] { return declare_multiple({msgh, static_cast<std::size_t>(num)}); });
}
ONEHOP_DOOR void QMP_free_msghandle(QMP_msghandle_t h) {
  guarded(__func__, [&] {
    if (h == nullptr) return;
    if (checked(h).active) throw BadInput("expected a handle that is not under way; wait for it first");
    delete h;
  });
}
ONEHOP_DOOR QMP_status_t QMP_clear_to_send(QMP_msghandle_t mh, QMP_clear_to_send_t /*cts*/) {
  return guarded(__func__, [&] {
    if (checked(mh).active) throw BadInput("expected a handle that is not under way; wait for it first");
    return QMP_SUCCESS;
  });
}
ONEHOP_DOOR QMP_status_t QMP_start(QMP_msghandle_t h) {
  return guarded(__func__, [&] { return start(h), QMP_SUCCESS; });
}
ONEHOP_DOOR QMP_status_t QMP_wait(QMP_msghandle_t h) {
  return guarded(__func__, [&] { return wait(h), QMP_SUCCESS; });
}
ONEHOP_DOOR QMP_status_t QMP_wait_all(QMP_msghandle_t h[], int num) {
  for (int i = 0; i < num; ++i) QMP_wait(h[i]);
  return QMP_SUCCESS;
}
ONEHOP_DOOR QMP_bool_t QMP_is_complete(QMP_msghandle_t h) {
  return guarded(__func__, [&] { return is_complete(h) ? QMP_TRUE : QMP_FALSE; });
}

// Global operations.

ONEHOP_DOOR QMP_status_t QMP_comm_barrier(QMP_comm_t comm) {
  return guarded(__func__, [&] { return checked(comm).circle->barrier(), QMP_SUCCESS; });
}
ONEHOP_DOOR QMP_status_t QMP_barrier() { return QMP_comm_barrier(QMP_comm_get_default()); }
ONEHOP_DOOR QMP_status_t QMP_comm_broadcast(QMP_comm_t comm, void* buffer, size_t nbytes) {
  return guarded(__func__, [&] {
    checked(comm).circle->broadcast({static_cast<std::byte*>(buffer), nbytes}, 0);
    return QMP_SUCCESS;
  });
}
ONEHOP_DOOR QMP_status_t QMP_broadcast(void* buffer, size_t nbytes) {
  return QMP_comm_broadcast(QMP_comm_get_default(), buffer, nbytes);
}
ONEHOP_DOOR QMP_status_t QMP_comm_sum_int(QMP_comm_t comm, int* value) {
  return guarded(__func__, [&] { return reduce(comm, value, 1, plus); });
}
ONEHOP_DOOR QMP_status_t QMP_sum_int(int* value) { return QMP_comm_sum_int(QMP_comm_get_default(), value); }
ONEHOP_DOOR QMP_status_t QMP_comm_sum_uint64_t(QMP_comm_t comm, uint64_t* value) {
  return guarded(__func__, [&] { return reduce(comm, value, 1, plus); });
}
ONEHOP_DOOR QMP_status_t QMP_sum_uint64_t(uint64_t* value) {
  return QMP_comm_sum_uint64_t(QMP_comm_get_default(), value);
}
ONEHOP_DOOR QMP_status_t QMP_comm_sum_float(QMP_comm_t comm, float* value) {
  return guarded(__func__, [&] { return reduce_as<double>(comm, value, plus); });
}
ONEHOP_DOOR QMP_status_t QMP_sum_float(float* value) { return QMP_comm_sum_float(QMP_comm_get_default(), value); }
ONEHOP_DOOR QMP_status_t QMP_comm_sum_double(QMP_comm_t comm, double* value) {
  return guarded(__func__, [&] { return reduce(comm, value, 1, plus); });
}
ONEHOP_DOOR QMP_status_t QMP_sum_double(double* value) { return QMP_comm_sum_double(QMP_comm_get_default(), value); }
ONEHOP_DOOR QMP_status_t QMP_comm_sum_long_double(QMP_comm_t comm, long double* value) {
  return guarded(__func__, [&] { return reduce(comm, value, 1, plus); });
}
ONEHOP_DOOR QMP_status_t QMP_sum_long_double(long double* value) {
  return QMP_comm_sum_long_double(QMP_comm_get_default(), value);
}
ONEHOP_DOOR QMP_status_t QMP_comm_sum_double_extended(QMP_comm_t comm, double* value) {
  return guarded(__func__, [&] { return reduce_as<long double>(comm, value, plus); });
}
ONEHOP_DOOR QMP_status_t QMP_sum_double_extended(double* value) {
  return QMP_comm_sum_double_extended(QMP_comm_get_default(), value);
}
ONEHOP_DOOR QMP_status_t QMP_comm_sum_float_array(QMP_comm_t comm, float value[], int length) {
  return guarded(__func__, [&] { return reduce(comm, value, length, plus); });
}
ONEHOP_DOOR QMP_status_t QMP_sum_float_array(float value[], int length) {
  return QMP_comm_sum_float_array(QMP_comm_get_default(), value, length);
}
ONEHOP_DOOR QMP_status_t QMP_comm_sum_double_array(QMP_comm_t comm, double value[], int length) {
  return guarded(__func__, [&] { return reduce(comm, value, length, plus); });
}
ONEHOP_DOOR QMP_status_t QMP_sum_double_array(double value[], int length) {
  return QMP_comm_sum_double_array(QMP_comm_get_default(), value, length);
}
ONEHOP_DOOR QMP_status_t QMP_comm_sum_long_double_array(QMP_comm_t comm, long double value[], int length) {
  return guarded(__func__, [&] { return reduce(comm, value, length, plus); });
}
ONEHOP_DOOR QMP_status_t QMP_sum_long_double_array(long double value[], int length) {
  return QMP_comm_sum_long_double_array(QMP_comm_get_default(), value, length);
}
ONEHOP_DOOR QMP_status_t QMP_comm_max_float(QMP_comm_t comm, float* value) {
  return guarded(__func__, [&] { return reduce(comm, value, 1, larger); });
}
ONEHOP_DOOR QMP_status_t QMP_max_float(float* value) { return QMP_comm_max_float(QMP_comm_get_default(), value); }
ONEHOP_DOOR QMP_status_t QMP_comm_max_double(QMP_comm_t comm, double* value) {
  return guarded(__func__, [&] { return reduce(comm, value, 1, larger); });
}
ONEHOP_DOOR QMP_status_t QMP_max_double(double* value) { return QMP_comm_max_double(QMP_comm_get_default(), value); }
ONEHOP_DOOR QMP_status_t QMP_comm_min_float(QMP_comm_t comm, float* value) {
  return guarded(__func__, [&] { return reduce(comm, value, 1, smaller); });
}
ONEHOP_DOOR QMP_status_t QMP_min_float(float* value) { return QMP_comm_min_float(QMP_comm_get_default(), value); }
ONEHOP_DOOR QMP_status_t QMP_comm_min_double(QMP_comm_t comm, double* value) {
  return guarded(__func__, [&] { return reduce(comm, value, 1, smaller); });
}
ONEHOP_DOOR QMP_status_t QMP_min_double(double* value) { return QMP_comm_min_double(QMP_comm_get_default(), value); }
ONEHOP_DOOR QMP_status_t QMP_comm_xor_ulong(QMP_comm_t comm, unsigned long* value) {
  return guarded(__func__, [&] { return reduce(comm, value, 1, [](auto a, auto b) { return a ^ b; }); });
}
ONEHOP_DOOR QMP_status_t QMP_xor_ulong(unsigned long* value) {
  return QMP_comm_xor_ulong(QMP_comm_get_default(), value);
}
ONEHOP_DOOR QMP_status_t QMP_comm_alltoall(QMP_comm_t comm, char* recvbuffer, char* sendbuffer, int count) {
  return guarded(__func__, [&] {
    const std::size_t bytes = static_cast<std::size_t>(count) * checked(comm).ranks.size();
    const auto got = comm->circle->exchange(std::as_bytes(std::span(sendbuffer, bytes)));
    if (bytes > 0) std::memcpy(recvbuffer, got.data(), bytes);
    return QMP_SUCCESS;
  });
}
ONEHOP_DOOR QMP_status_t QMP_comm_binary_reduction(QMP_comm_t comm, void* lbuffer, size_t buflen,
                                                   QMP_binary_func bfunc) {
  return guarded(__func__, [&] {
    if (bfunc == nullptr) throw BadInput("expected a function, found a null pointer");
    const auto all = checked(comm).circle->gather({static_cast<std::byte*>(lbuffer), buflen});
    // As MPI has it: the second argument is what the nodes before made, the first is the next node's and becomes the result.
    std::vector<std::byte> before(buflen);
    for (std::size_t node = 0; node < comm->ranks.size() && buflen > 0; ++node) {
      if (node > 0) std::memcpy(before.data(), lbuffer, buflen);
      std::memcpy(lbuffer, all.data() + node * buflen, buflen);
      if (node > 0) bfunc(lbuffer, before.data());
    }
    return QMP_SUCCESS;
  });
}
ONEHOP_DOOR QMP_status_t QMP_binary_reduction(void* lbuffer, size_t buflen, QMP_binary_func bfunc) {
  return QMP_comm_binary_reduction(QMP_comm_get_default(), lbuffer, buflen, bfunc);
}

// Errors, and what is printed.

ONEHOP_DOOR const char* QMP_error_string(QMP_status_t code) {
  static constexpr std::array<const char*, QMP_MAX_STATUS - QMP_ERROR> texts{
      "an error",
      "message passing is not initialised",
      "the environment of the run is not set up",
      "nothing is known of the processor",
      "nothing is known of the node",
      "out of memory",
      "more is sent than is received into",
      "the node's name is unknown",
      "the service below could not be started",
      "there is a logical topology already",
      "connecting took too long",
      "not supported",
      "the service below is busy",
      "not a valid message",
      "not a valid argument",
      "not a valid topology",
      "nothing is known of the neighbours",
      "the memory is too large",
      "not a valid memory for a message",
      "no ports left",
      "there is no such node",
      "not a valid channel",
      "the receiving memory is in use",
      "not possible in this state",
      "took too long",
  };
  if (code == QMP_SUCCESS) return "success";
  if (code < QMP_ERROR || code >= QMP_MAX_STATUS) return "not a status of QMP";
  return texts[static_cast<std::size_t>(code - QMP_ERROR)];
}
// A call that fails ends the program, or returns its status itself.
ONEHOP_DOOR QMP_status_t QMP_get_error_number(QMP_msghandle_t /*mh*/) { return QMP_SUCCESS; }
ONEHOP_DOOR const char* QMP_get_error_string(QMP_msghandle_t mh) { return QMP_error_string(QMP_get_error_number(mh)); }
ONEHOP_DOOR int QMP_verbose(int level) { return std::exchange(verbosity, level); }
ONEHOP_DOOR int QMP_profcontrol(int level) { return std::exchange(profiling, level); }

ONEHOP_DOOR int QMP_printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = print(stdout, "", format, arguments);
  va_end(arguments);
  return length;
}
ONEHOP_DOOR int QMP_fprintf(FILE* stream, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = print(stream, "", format, arguments);
  va_end(arguments);
  return length;
}
ONEHOP_DOOR int QMP_info(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = print(stdout, " info", format, arguments);
  va_end(arguments);
  return length;
}
ONEHOP_DOOR int QMP_error(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = print(stderr, " error", format, arguments);
  va_end(arguments);
  return length;
}
ONEHOP_DOOR double QMP_time() { return now(); }
ONEHOP_DOOR void QMP_reset_total_qmp_time() {}
ONEHOP_DOOR double QMP_get_total_qmp_time() { return 0; }
ONEHOP_DOOR const char* QMP_version_str() { return "2.5.4"; }
ONEHOP_DOOR int QMP_version_int() { return 2'005'004; }
