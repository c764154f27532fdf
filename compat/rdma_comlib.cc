// rdma_comlib over channels. A path has one channel to its target and one from its source. Starting a message copies it
// out of sbuff, so two paths may share an sbuff. The part that fills whole pages of the target's rbuff is copied
// straight into these pages (rdma_comlib/shared_pages.h); the rest passes through the channel, and is copied into rbuff
// when the receiver waits for it.
#include "compat/rdma_comlib.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compat/rdma_comlib/shared_pages.h"
#include "compat/shared/boundary.h"
#include "onehop/channel.h"
#include "onehop/error.h"
#include "onehop/group.h"
#include "onehop/machine/rails.h"
#include "onehop/tuning.h"

namespace {

using onehop::BadInput;
using onehop::ChannelSpec;
using onehop::Group;
using onehop::compat::guarded;
using onehop::compat::rdma_comlib::PagesPlace;
using onehop::compat::rdma_comlib::PeersPages;
using onehop::compat::rdma_comlib::SharedPages;

constexpr std::uint64_t open_mark = 0x6f6e65686f702d72;  // any number that memory is unlikely to hold by chance
constexpr int network_interfaces = 6;
constexpr int counter_modulus = 256;
constexpr std::size_t program_data_bytes = 144;  // bytes that programs reserve for an rdma_comlib_data

static_assert(sizeof(rdma_comlib_data) == program_data_bytes);
static_assert(offsetof(rdma_comlib_data, rbuff) == 8 && offsetof(rdma_comlib_data, length) == 16);

struct Path {
  int target = 0;
  int source = 0;
  SharedPages pages;       // pages of rbuff, which the source writes
  PeersPages peers_pages;  // pages of the target's rbuff
  onehop::Sender sender;   // for the rest of a message
  onehop::Receiver receiver;
  bool holds = false;  // whether a received message is held, so that the source does not overwrite it

  void release() {
    if (std::exchange(holds, false)) receiver.release();
  }
};

struct World {
  std::mutex mutex;
  std::optional<Group> group;
};

World& the_world() {
  static World world;
  return world;
}

Group group() {
  World& world = the_world();
  const std::lock_guard guard(world.mutex);
  if (!world.group) world.group = Group::world();
  return *world.group;
}

int directions = 8;  // of the program's lattice

Path& path_of(const rdma_comlib_data* id) {
  if (id == nullptr) throw BadInput("expected a path, found a null pointer");
  if (id->mark != open_mark) {
    throw BadInput("expected a path that rdma_comlib_new made, found memory that is not an open path");
  }
  return *static_cast<Path*>(id->path);
}

volatile int& counter(volatile int* buffer, const rdma_comlib_data* id) { return buffer[id->data_len_int - 1]; }

std::byte* bytes(volatile int* buffer) { return reinterpret_cast<std::byte*>(const_cast<int*>(buffer)); }

volatile int* allocate(std::size_t size) {
  constexpr std::size_t alignment = 256;
  void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw onehop::Error("no memory for a buffer of " + std::to_string(size) + " bytes");
  return static_cast<volatile int*>(memory);
}

// Returns an error message if this rank's arguments cannot be right. It is checked before the ranks communicate.
std::optional<std::string> complaint(const rdma_comlib_data* id, int target, int source, std::size_t size,
                                     bool external) {
  const int ranks = group().size();
  if (id == nullptr) return "expected an rdma_comlib_data, found a null pointer";
  for (const int rank : {target, source}) {
    if (rank < 0 || rank >= ranks) {
      return "expected ranks from 0 to " + std::to_string(ranks - 1) + ", found " + std::to_string(rank);
    }
  }
  if (size % sizeof(int) != 0) return "expected a multiple of 4 bytes, found " + std::to_string(size);
  if (external && (id->sbuff == nullptr || id->rbuff == nullptr)) {
    return std::string("expected the caller's sbuff and rbuff, found a null pointer for ") +
           (id->sbuff == nullptr ? "sbuff" : "rbuff");
  }
  return std::nullopt;
}

// Tells the source where rbuff's pages are, and learns the same from the target. If one of the two cannot map the
// pages, the whole message goes through the channel. The same holds if the lengths differ, and then opening the channel
// fails. Collective.
void share_pages(Path& path, std::span<std::byte> rbuff) {
  using Direction = ChannelSpec::Direction;
  constexpr int place_tag = 1;
  constexpr int mapped_tag = 2;
  const Group all = group();
  const std::array<ChannelSpec, 4> specs{
      ChannelSpec{.direction = Direction::send, .peer = path.source, .bytes = sizeof(PagesPlace), .tag = place_tag},
      ChannelSpec{.direction = Direction::receive, .peer = path.target, .bytes = sizeof(PagesPlace), .tag = place_tag},
      ChannelSpec{.direction = Direction::send, .peer = path.target, .bytes = sizeof(bool), .tag = mapped_tag},
      ChannelSpec{.direction = Direction::receive, .peer = path.source, .bytes = sizeof(bool), .tag = mapped_tag}};
  onehop::Channels channels = onehop::open_channels(all, specs);
  if (path.source != all.rank() && all.shares_memory(path.source)) path.pages = SharedPages(rbuff);
  PagesPlace place = path.pages.place();
  place.message = rbuff.size();
  channels.senders[0].put(std::as_bytes(std::span(&place, 1)));
  channels.receivers[0].get(std::as_writable_bytes(std::span(&place, 1)));
  if (place.message == rbuff.size()) path.peers_pages = PeersPages(place);
  bool mapped = path.peers_pages.bytes() > 0;
  channels.senders[1].put(std::as_bytes(std::span(&mapped, 1)));
  channels.receivers[1].get(std::as_writable_bytes(std::span(&mapped, 1)));
  if (mapped) {
    path.pages.close_file();
  } else {
    path.pages = {};
  }
}

// Uses one slot only, which the receiver releases when it is done with rbuff.
ChannelSpec beside_pages(ChannelSpec spec, std::size_t pages) {
  if (pages == 0) return spec;
  spec.bytes -= static_cast<std::int64_t>(pages);
  spec.slots = 1;
  spec.slot_bytes = spec.chunk_bytes = std::max<std::int64_t>(spec.bytes, sizeof(int));
  return spec;
}

void open_path(rdma_comlib_data* id, int target, int source, std::size_t size, bool external) {
  if (const auto why = complaint(id, target, source, size, external)) {
    onehop::refuse_channels(group(), *why);
    throw BadInput(*why);
  }
  const std::size_t data_size = size + sizeof(int);
  if (!external) {
    id->sbuff = allocate(data_size);
    id->rbuff = allocate(data_size);
  }
  auto path = std::make_unique<Path>();
  path->target = target;
  path->source = source;
  id->length = size;
  id->data_size = data_size;
  id->data_len_int = data_size / sizeof(int);
  counter(id->sbuff, id) = 0;
  counter(id->rbuff, id) = counter_modulus - 1;  // before the source can write there
  share_pages(*path, {bytes(id->rbuff), data_size});
  using Direction = ChannelSpec::Direction;
  const auto length = static_cast<std::int64_t>(data_size);
  const std::array<ChannelSpec, 2> specs{
      beside_pages({.direction = Direction::send, .peer = target, .bytes = length}, path->peers_pages.bytes()),
      beside_pages({.direction = Direction::receive, .peer = source, .bytes = length}, path->pages.place().bytes)};
  onehop::Channels channels = onehop::open_channels(group(), specs);
  path->sender = std::move(channels.senders.front());
  path->receiver = std::move(channels.receivers.front());
  id->path = path.release();
  id->mark = open_mark;
}

// Copies the parts of a message outside the shared pages: `head` bytes before them, and the bytes after them.
void copy_around(std::byte* to, std::size_t to_skip, const std::byte* from, std::size_t from_skip, std::size_t head,
                 std::size_t all) {
  if (head > 0) std::memcpy(to, from, head);
  if (all > head) std::memcpy(to + head + to_skip, from + head + from_skip, all - head);
}

void send(Path& path, std::span<const std::byte> message) {
  const PeersPages& pages = path.peers_pages;
  if (pages.bytes() == 0) return path.sender.put(message);
  const std::span<std::byte> slot = path.sender.slot();
  const onehop::StoreKind stores = onehop::tuning().rule(static_cast<std::int64_t>(message.size())).stores;
  onehop::store_bytes(stores, pages.data(), message.subspan(pages.at(), pages.bytes()));
  copy_around(slot.data(), 0, message.data(), pages.bytes(), pages.at(), slot.size());
  path.sender.put();
}

void receive(Path& path, std::span<std::byte> message) {
  const PagesPlace& pages = path.pages.place();
  if (pages.bytes == 0) return path.receiver.get(message);
  const std::span<const std::byte> slot = path.receiver.wait();
  copy_around(message.data(), pages.bytes, slot.data(), 0, pages.at, slot.size());
  path.holds = true;
}

bool is_external(const int* has_external) { return has_external != nullptr && *has_external != 0; }

void new_path(rdma_comlib_data* id, const int* tni_id, const int* dst_rank, const int* rcv_rank, const size_t* size,
              const int* has_external) {
  if (*tni_id < 0 || *tni_id >= network_interfaces) {
    const std::string why = "expected a network interface from 0 to 5, found " + std::to_string(*tni_id);
    onehop::refuse_channels(group(), why);
    throw BadInput(why);
  }
  open_path(id, *dst_rank, *rcv_rank, *size, is_external(has_external));
}

// The ranks of this host that have joined, this rank included; only this rank if it has not joined a group.
std::vector<int> ranks_of_host() {
  World& world = the_world();
  const std::lock_guard guard(world.mutex);
  return world.group ? world.group->local_ranks() : std::vector<int>{0};
}

int own_rank() {
  World& world = the_world();
  const std::lock_guard guard(world.mutex);
  return world.group ? world.group->rank() : 0;
}

// Chooses the interfaces of this rank's directions. Every rank of the host assigns the messages of all of them, and
// finds the same assignment.
void balance_interfaces(int* tni_list, const std::size_t* sizes) {
  if (tni_list == nullptr || sizes == nullptr) {
    throw BadInput(std::string("expected a list and the sizes of all directions, found a null pointer for ") +
                   (tni_list == nullptr ? "the list" : "the sizes"));
  }
  std::vector<onehop::RailMessage> messages;
  for (const int rank : ranks_of_host()) {
    for (int direction = 0; direction < directions; ++direction) {
      const std::size_t size = sizes[direction];
      if (!std::in_range<std::int64_t>(size)) {
        throw BadInput("expected sizes below 2^63 bytes, found " + std::to_string(size));
      }
      messages.push_back({rank, direction, static_cast<std::int64_t>(size)});
    }
  }
  const std::vector<double> speeds(network_interfaces, 1.0);
  for (const onehop::RailAssignment& one : assign_rails(messages, {.speeds = speeds}).assignments) {
    if (one.from == own_rank()) tni_list[one.to] = one.rail;
  }
}

void delete_path(rdma_comlib_data* id, const int* has_external) {
  delete &path_of(id);
  if (!is_external(has_external)) {
    std::free(bytes(id->sbuff));
    std::free(bytes(id->rbuff));
    id->sbuff = nullptr;
    id->rbuff = nullptr;
  }
  id->length = 0;
  id->data_size = 0;
  id->data_len_int = 0;
  id->path = nullptr;
  id->mark = 0;
}

}  // namespace

ONEHOP_COMPAT_API void rdma_comlib_init() {
  guarded("rdma_comlib_init", [] { static_cast<void>(group()); });
}

ONEHOP_COMPAT_API void rdma_comlib_finalize() {
  guarded("rdma_comlib_finalize", [] {
    World& world = the_world();
    const std::lock_guard guard(world.mutex);
    world.group.reset();
    // Programs finalise MPI after this, and the group may use MPI.
    Group::close_world();
  });
}

ONEHOP_COMPAT_API void rdma_comlib_new_ext(rdma_comlib_data* id, const int* tni_id, const int* dst_rank,
                                           const int* rcv_rank, const size_t* size, const int* has_external) {
  guarded("rdma_comlib_new_ext", [&] { new_path(id, tni_id, dst_rank, rcv_rank, size, has_external); });
}

ONEHOP_COMPAT_API void rdma_comlib_new(rdma_comlib_data* id, const int* tni_id, const int* dst_rank,
                                       const int* rcv_rank, const size_t* size) {
  guarded("rdma_comlib_new", [&] { new_path(id, tni_id, dst_rank, rcv_rank, size, nullptr); });
}

ONEHOP_COMPAT_API void rdma_comlib_new_duplicate(rdma_comlib_data* id, const rdma_comlib_data* original,
                                                 const size_t* size, const int* has_external) {
  guarded("rdma_comlib_new_duplicate", [&] {
    const Path& path = path_of(original);
    open_path(id, path.target, path.source, *size, is_external(has_external));
  });
}

ONEHOP_COMPAT_API void rdma_comlib_delete_ext(rdma_comlib_data* id, const int* has_external) {
  guarded("rdma_comlib_delete_ext", [&] { delete_path(id, has_external); });
}

ONEHOP_COMPAT_API void rdma_comlib_delete(rdma_comlib_data* id) {
  guarded("rdma_comlib_delete", [&] { delete_path(id, nullptr); });
}

ONEHOP_COMPAT_API void rdma_comlib_isendrecv(rdma_comlib_data* id) {
  guarded("rdma_comlib_isendrecv", [&] {
    Path& path = path_of(id);
    volatile int& count = counter(id->sbuff, id);
    count = (count + 1) % counter_modulus;
    path.release();
    send(path, {bytes(id->sbuff), id->data_size});
  });
}

ONEHOP_COMPAT_API void rdma_comlib_irecv_check(rdma_comlib_data* id) {
  guarded("rdma_comlib_irecv_check", [&] {
    Path& path = path_of(id);
    path.release();
    receive(path, {bytes(id->rbuff), id->data_size});
  });
}

// A message has left sbuff when rdma_comlib_isendrecv returns, and there is no network queue to be cleared.

ONEHOP_COMPAT_API void rdma_comlib_isend_check(rdma_comlib_data* id) {
  guarded("rdma_comlib_isend_check", [&] { path_of(id); });
}

ONEHOP_COMPAT_API void rdma_comlib_irecv_ok(rdma_comlib_data* id) {
  guarded("rdma_comlib_irecv_ok", [&] { path_of(id).release(); });
}

ONEHOP_COMPAT_API void rdma_comlib_clear_mrq(rdma_comlib_data* id) {
  guarded("rdma_comlib_clear_mrq", [&] { path_of(id); });
}

ONEHOP_COMPAT_API void rdma_comlib_swap_vcq_for_sending(rdma_comlib_data* id1, rdma_comlib_data* id2) {
  guarded("rdma_comlib_swap_vcq_for_sending", [&] {
    path_of(id1);
    path_of(id2);
  });
}

ONEHOP_COMPAT_API int rdma_comlib_get_ssize(const rdma_comlib_data* id) {
  return guarded("rdma_comlib_get_ssize", [&] {
    path_of(id);
    return static_cast<int>(id->length);
  });
}

ONEHOP_COMPAT_API int rankmap_lib_set_rankmap2d() {
  directions = 4;
  return -1;
}

ONEHOP_COMPAT_API int rankmap_lib_set_rankmap4d() {
  directions = 8;
  return -1;
}

ONEHOP_COMPAT_API int rankmap_lib_get_rankmap(int* /*coordinates*/, int* /*neighbours*/, int* /*sizes*/) { return -1; }

// Without sizes, all messages count as equal.
ONEHOP_COMPAT_API int rankmap_lib_get_tni_list(int* tni_list, const int* /*flag*/) {
  return guarded("rankmap_lib_get_tni_list", [&] {
    const std::vector<std::size_t> equal(static_cast<std::size_t>(directions), 1);
    balance_interfaces(tni_list, equal.data());
    return 0;
  });
}

ONEHOP_COMPAT_API int rankmap_lib_get_balanced_tni_list(int* tni_list, const size_t* sizes) {
  return guarded("rankmap_lib_get_balanced_tni_list", [&] {
    balance_interfaces(tni_list, sizes);
    return 0;
  });
}
