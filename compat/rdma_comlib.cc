// rdma_comlib over channels. A path has one channel to its target and one from its source. Starting a message copies it
// out of sbuff, so two paths may share an sbuff. The part that fills whole pages of the target's rbuff is copied
// straight into these pages (rdma_comlib/shared_pages.h); the rest passes through the channel, and is copied into rbuff
// when the receiver waits for it.
#include "compat/rdma_comlib.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compat/rdma_comlib/shared_pages.h"
#include "compat/rdma_comlib/world.h"
#include "compat/shared/boundary.h"
#include "compat/shared/handles.h"
#include "compat/shared/memory.h"
#include "onehop/channel.h"
#include "onehop/detail/forks.h"
#include "onehop/error.h"
#include "onehop/group.h"
#include "onehop/tuning.h"
#include "src/channel/store.h"

namespace {

using onehop::BadInput;
using onehop::ChannelSpec;
using onehop::compat::check_memory;
using onehop::compat::check_process;
using onehop::compat::check_size;
using onehop::compat::checked_value;
using onehop::compat::guarded;
using onehop::compat::Handles;
using onehop::compat::rdma_comlib::check_open;
using onehop::compat::rdma_comlib::group;
using onehop::compat::rdma_comlib::PagesPlace;
using onehop::compat::rdma_comlib::PeersPages;
using onehop::compat::rdma_comlib::SharedPages;

constexpr std::uint64_t open_mark = 0x6f6e65686f702d72;  // any number that memory is unlikely to hold by chance
constexpr int network_interfaces = 6;
constexpr int counter_modulus = 256;
constexpr std::size_t program_data_bytes = 144;  // bytes that programs reserve for an rdma_comlib_data

static_assert(sizeof(rdma_comlib_data) == program_data_bytes);
static_assert(offsetof(rdma_comlib_data, rbuff) == 8 && offsetof(rdma_comlib_data, length) == 16);

std::byte* bytes(volatile int* buffer) { return reinterpret_cast<std::byte*>(const_cast<int*>(buffer)); }

// A buffer of this library. Paths whose sbuff is the same share it, so that it outlives the path that made it.
struct Buffer {
  std::shared_ptr<volatile int> first;  // null: the program provides the buffer
  std::size_t size = 0;
};

struct Path {
  Buffer sent;  // declared before `pages`, which lie in `received`
  Buffer received;
  rdma_comlib_data fields;                  // as the program must leave them
  const rdma_comlib_data* place = nullptr;  // of the program's struct when it was last used
  std::uint32_t forks = 0;                  // when the path was opened
  bool external = false;                    // whether the program provides the buffers
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

constinit Handles<void*, Path, 0x71> paths("a path", "rdma_comlib_new");

// Throws BadInput if the struct is no open path, or if the program has changed what it may only read.
Path& path_of(const rdma_comlib_data* id) {
  if (id == nullptr) throw BadInput("expected a path, found a null pointer");
  if (id->mark != open_mark) {
    throw BadInput("expected a path that rdma_comlib_new made, found memory that is not an open path");
  }
  Path& path = paths.at(id->path);
  const rdma_comlib_data& made = path.fields;
  if (id->sbuff != made.sbuff || id->rbuff != made.rbuff || id->length != made.length ||
      id->data_size != made.data_size || id->data_len_int != made.data_len_int) [[unlikely]] {
    throw BadInput(
        "expected the fields of the path as rdma_comlib_new set them, found others; open another path for "
        "other buffers or sizes");
  }
  path.place = id;
  return path;
}

// The path, where messages can still be sent.
Path& usable_path(const rdma_comlib_data* id) {
  Path& path = path_of(id);
  check_open();
  check_process(path.forks);
  return path;
}

volatile int& counter(volatile int* buffer, const rdma_comlib_data* id) { return buffer[id->data_len_int - 1]; }

Buffer allocate(std::size_t size) {
  constexpr std::size_t alignment = 256;
  check_size(size);
  void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw onehop::Error("no memory for a buffer of " + std::to_string(size) + " bytes");
  return {{static_cast<volatile int*>(memory), [](volatile int* first) { std::free(bytes(first)); }}, size};
}

// Checks buffers of the program. `shared` is the library's buffer that sbuff may be.
void check_buffers(const rdma_comlib_data& data, std::size_t size, const Buffer& shared) {
  for (const bool sends : {true, false}) {
    volatile int* const buffer = sends ? data.sbuff : data.rbuff;
    const char* const name = sends ? "sbuff" : "rbuff";
    if (buffer == nullptr) {
      throw BadInput(std::string("expected the caller's sbuff and rbuff, found a null pointer for ") + name);
    }
    if (reinterpret_cast<std::uintptr_t>(buffer) % alignof(int) != 0) {
      throw BadInput(std::string("expected an address for ints as ") + name + ", found one that is no multiple of 4");
    }
    check_memory(bytes(buffer), size);
  }
  if (shared.first != nullptr && data.sbuff == shared.first.get() && size > shared.size) {
    throw BadInput("expected a message of at most the " + std::to_string(shared.size - sizeof(int)) +
                   " bytes of the shared sbuff, found " + std::to_string(size - sizeof(int)));
  }
}

// A program's request for a path. Pointers stay as they came.
struct Request {
  rdma_comlib_data* id = nullptr;
  int target = 0;
  int source = 0;
  std::size_t size = 0;
  bool external = false;
  Buffer shared;  // the original's sbuff
};

// Checks this rank's arguments and sets the struct's buffers and sizes. Throws before the ranks communicate.
void set_fields(const Request& request, Path& path) {
  const auto& [id, target, source, size, external, shared] = request;
  const int ranks = group().size();
  if (id == nullptr) throw BadInput("expected an rdma_comlib_data, found a null pointer");
  if (id->mark == open_mark && paths.has(id->path) && paths.at(id->path).place == id) {
    throw BadInput("expected an rdma_comlib_data that is not in use, found an open path; delete it first");
  }
  for (const int rank : {target, source}) {
    if (rank < 0 || rank >= ranks) {
      throw BadInput("expected ranks from 0 to " + std::to_string(ranks - 1) + ", found " + std::to_string(rank));
    }
  }
  if (size % sizeof(int) != 0) throw BadInput("expected a multiple of 4 bytes, found " + std::to_string(size));
  if (size > PTRDIFF_MAX - sizeof(int)) {
    throw BadInput("expected fewer bytes than there are addresses, found " + std::to_string(size));
  }
  const std::size_t data_size = size + sizeof(int);
  if (external) {
    check_buffers(*id, data_size, shared);
    if (id->sbuff == shared.first.get()) path.sent = shared;
  } else {
    path.sent = allocate(data_size);
    path.received = allocate(data_size);
    id->sbuff = path.sent.first.get();
    id->rbuff = path.received.first.get();
  }
  id->length = size;
  id->data_size = data_size;
  id->data_len_int = data_size / sizeof(int);
  path.target = target;
  path.source = source;
  path.external = external;
}

// Tells the source where rbuff's pages are, and learns the same from the target. If one of the two cannot map the
// pages, the whole message goes through the channel. The same holds if the lengths differ, and then opening the channel
// fails. Collective.
void share_pages(Path& path, std::span<std::byte> rbuff) {
  using Direction = ChannelSpec::Direction;
  constexpr int place_tag = 1;
  constexpr int mapped_tag = 2;
  const onehop::Group all = group();
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

// `request` returns what this rank asks for, or throws. If it throws, the other ranks are told why. Collective.
template <class MakeRequest>
void open_path(MakeRequest make_request) {
  Path path;
  Request request;
  try {
    request = make_request();
    set_fields(request, path);
  } catch (const std::exception& error) {
    onehop::refuse_channels(group(), error.what());
    throw;
  }
  rdma_comlib_data* const id = request.id;
  counter(id->sbuff, id) = 0;
  counter(id->rbuff, id) = counter_modulus - 1;  // before the source can write there
  share_pages(path, {bytes(id->rbuff), id->data_size});
  using Direction = ChannelSpec::Direction;
  const auto length = static_cast<std::int64_t>(id->data_size);
  const std::array<ChannelSpec, 2> specs{
      beside_pages({.direction = Direction::send, .peer = path.target, .bytes = length}, path.peers_pages.bytes()),
      beside_pages({.direction = Direction::receive, .peer = path.source, .bytes = length}, path.pages.place().bytes)};
  onehop::Channels channels = onehop::open_channels(group(), specs);
  path.sender = std::move(channels.senders.front());
  path.receiver = std::move(channels.receivers.front());
  path.forks = onehop::detail::forks.load(std::memory_order_relaxed);
  path.place = id;
  path.fields = *id;
  id->path = paths.add(std::move(path));
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
  open_path([&] {
    const int interface = checked_value(tni_id);
    if (interface < 0 || interface >= network_interfaces) {
      throw BadInput("expected a network interface from 0 to 5, found " + std::to_string(interface));
    }
    return Request{id, checked_value(dst_rank), checked_value(rcv_rank), checked_value(size), is_external(has_external),
                   {}};
  });
}

void delete_path(rdma_comlib_data* id, const int* has_external) {
  const Path& path = path_of(id);
  check_process(path.forks);
  if (path.external != is_external(has_external)) {
    throw BadInput(path.external ? "expected has_external = 1, found 0 for a path whose buffers the program provided"
                                 : "expected has_external = 0, found 1 for a path whose buffers rdma_comlib allocated");
  }
  const bool external = path.external;
  paths.remove(id->path);
  if (!external) {
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

ONEHOP_COMPAT_FUNCTION(void, rdma_comlib_init, (), onehop::compat::rdma_comlib::open_world())
ONEHOP_COMPAT_FUNCTION(void, rdma_comlib_finalize, (), onehop::compat::rdma_comlib::close_world())
ONEHOP_COMPAT_FUNCTION(void, rdma_comlib_new_ext,
                       (rdma_comlib_data * id, const int* tni_id, const int* dst_rank, const int* rcv_rank,
                        const size_t* size, const int* has_external),
                       new_path(id, tni_id, dst_rank, rcv_rank, size, has_external))
ONEHOP_COMPAT_FUNCTION(void, rdma_comlib_new,
                       (rdma_comlib_data * id, const int* tni_id, const int* dst_rank, const int* rcv_rank,
                        const size_t* size),
                       new_path(id, tni_id, dst_rank, rcv_rank, size, nullptr))

ONEHOP_COMPAT_API void rdma_comlib_new_duplicate(rdma_comlib_data* id, const rdma_comlib_data* original,
                                                 const size_t* size, const int* has_external) {
  guarded("rdma_comlib_new_duplicate", [&] {
    open_path([&] {
      const Path& path = usable_path(original);
      return Request{id, path.target, path.source, checked_value(size), is_external(has_external), path.sent};
    });
  });
}

ONEHOP_COMPAT_FUNCTION(void, rdma_comlib_delete_ext, (rdma_comlib_data * id, const int* has_external),
                       delete_path(id, has_external))
ONEHOP_COMPAT_FUNCTION(void, rdma_comlib_delete, (rdma_comlib_data * id), delete_path(id, nullptr))

ONEHOP_COMPAT_API void rdma_comlib_isendrecv(rdma_comlib_data* id) {
  guarded("rdma_comlib_isendrecv", [&] {
    Path& path = usable_path(id);
    volatile int& count = counter(id->sbuff, id);
    count = (count + 1) % counter_modulus;
    path.release();
    send(path, {bytes(id->sbuff), id->data_size});
  });
}

ONEHOP_COMPAT_API void rdma_comlib_irecv_check(rdma_comlib_data* id) {
  guarded("rdma_comlib_irecv_check", [&] {
    Path& path = usable_path(id);
    path.release();
    receive(path, {bytes(id->rbuff), id->data_size});
  });
}

// A message has left sbuff when rdma_comlib_isendrecv returns, and there is no network queue to be cleared.

ONEHOP_COMPAT_FUNCTION(void, rdma_comlib_isend_check, (rdma_comlib_data * id), path_of(id))
ONEHOP_COMPAT_FUNCTION(void, rdma_comlib_irecv_ok, (rdma_comlib_data * id), usable_path(id).release())
ONEHOP_COMPAT_FUNCTION(void, rdma_comlib_clear_mrq, (rdma_comlib_data * id), path_of(id))

ONEHOP_COMPAT_API void rdma_comlib_swap_vcq_for_sending(rdma_comlib_data* id1, rdma_comlib_data* id2) {
  guarded("rdma_comlib_swap_vcq_for_sending", [&] {
    path_of(id1);
    path_of(id2);
  });
}

ONEHOP_COMPAT_API int rdma_comlib_get_ssize(const rdma_comlib_data* id) {
  return guarded("rdma_comlib_get_ssize", [&] {
    path_of(id);
    if (id->length > INT_MAX)
      throw BadInput("expected a message whose bytes an int can count, found " + std::to_string(id->length));
    return static_cast<int>(id->length);
  });
}
