#include "src/ucx/worker.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "onehop/error.h"
#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/group/group_state.h"

namespace onehop::detail::ucx {
namespace {

// How often UCX is called while the program does something else, and once it has had something to do.
constexpr std::chrono::milliseconds idle_period{5};
constexpr std::chrono::microseconds busy_period{200};
// How many seconds a group that closes waits until its peers have its last messages.
constexpr double drain_limit = 2;
constexpr std::array kinds{Kind::part, Kind::released, Kind::key,    Kind::leaving,
                           Kind::left, Kind::hello,    Kind::welcome};

std::uint64_t key_of(const Destination& to) {
  return std::uint64_t{static_cast<std::uint32_t>(to.from)} << 32 | to.channel;
}

// Frees completed requests; set with the first worker. A process uses one library.
constinit std::atomic<void (*)(void*)> request_free{nullptr};

}  // namespace

bool Outgoing::idle() const noexcept {
  return std::ranges::all_of(pending, [](std::uint32_t count) { return count == 0; });
}

RingMemory allocate(std::int64_t bytes) {
  constexpr std::int64_t page = 4096;
  const std::int64_t all = (bytes + page - 1) / page * page;
  const std::int64_t available = available_memory();
  if (all <= available) {
    if (RingMemory memory{static_cast<std::byte*>(std::aligned_alloc(page, static_cast<std::size_t>(all)))}) {
      std::memset(memory.get(), 0, static_cast<std::size_t>(all));
      return memory;
    }
  }
  throw Error("the slots of a channel over UCX need " + base::counted(all, "byte") + ", " + std::to_string(available) +
              " are available; ask for smaller or fewer slots");
}

Registered::Registered(const ProcessContext& context, std::byte* memory, std::int64_t bytes) : context_(context) {
  const Library& library = context.library;
  MapParams params;
  params.field_mask = MapParams::has_address | MapParams::has_length;
  params.address = memory;
  params.length = static_cast<std::size_t>(bytes);
  const std::string step =
      "registering " + base::counted(bytes, "byte") + " for writes by other hosts (does `ulimit -l` allow it?)";
  check(library, library.memory_map(context.context, &params, &handle_), step);
  void* packed = nullptr;
  std::size_t length = 0;
  const Status status = library.key_pack(context.context, handle_, &packed, &length);
  if (static_cast<int>(status) < 0) library.memory_unmap(context.context, handle_);
  check(library, status, step);
  const auto* const begin = static_cast<const std::byte*>(packed);
  key.assign(begin, begin + length);
  library.key_release(packed);
}

Registered::~Registered() { static_cast<void>(context_.library.memory_unmap(context_.context, handle_)); }

Connections::Connections(const ProcessContext& context, int rank, int ranks)
    : context_(context), library_(context.library), rank_(rank) {
  request_free.store(library_.request_free, std::memory_order_relaxed);
  WorkerParams params;
  params.field_mask = WorkerParams::has_thread_mode;
  params.thread_mode = ThreadMode::serialized;  // every call is made with the lock
  check(library_, library_.worker_create(context.context, &params, &worker_), "making a worker");
  arguments_.reserve(kinds.size());
  for (const Kind kind : kinds) {
    HandlerParams handler;
    handler.field_mask =
        HandlerParams::has_id | HandlerParams::has_flags | HandlerParams::has_call | HandlerParams::has_argument;
    handler.id = static_cast<unsigned>(kind);
    handler.flags = HandlerParams::whole_message;
    handler.call = &Connections::arrived;
    handler.argument = &arguments_.emplace_back(HandlerArgument{this, kind});
    check(library_, library_.set_handler(worker_, &handler), "preparing for messages");
  }
  for (int r = 0; r < ranks; ++r) {
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->owner = this;
    peers_.back()->rank = r;
  }
  join();
  driver_ = std::make_unique<std::thread>([this] { drive_until_closed(); });
}

Connections::~Connections() {
  if (!process_.is_this_process()) {  // all of it belongs to the parent, and the thread was not forked
    [[maybe_unused]] auto* const kept = driver_.release();
    return;
  }
  closed_.store(true, std::memory_order_relaxed);
  driver_->join();
  leave();
  say_goodbye();
  close_all();
  for (auto& outgoing : lingering_) {
    if (!outgoing->idle())
      new (std::nothrow) std::shared_ptr<Outgoing>(std::move(outgoing));  // leaked: UCX may still read it
  }
}

// Messages that are still on their way would be lost with the connection, so every peer confirms that it has them.
void Connections::say_goodbye() {
  std::vector<Peer*> open;
  for (auto& peer : peers_) {
    if (peer->end == nullptr || lost(peer->rank)) continue;
    say(peer->rank, Kind::leaving);
    open.push_back(peer.get());
  }
  const double end = base::steady_seconds() + drain_limit;
  const auto waits = [this](const Peer* peer) { return !peer->left && !lost(peer->rank); };
  while (std::ranges::any_of(open, waits) && base::steady_seconds() < end) {
    progress();
    sched_yield();
  }
}

void Connections::close_all() {
  std::uint32_t closing = 0;
  for (auto& peer : peers_) {
    const std::lock_guard guard(mutex_);
    for (RemoteKey* key : peer->keys) library_.key_destroy(key);
    if (peer->end == nullptr) continue;
    RequestParams params;
    params.field_mask = RequestParams::has_flags | RequestParams::has_callback | RequestParams::has_user_data;
    params.flags = lost(peer->rank) || !peer->left ? RequestParams::force_close : 0;
    params.call = &Connections::completed;
    params.user_data = &closing;
    if (is_request(library_.end_close(peer->end, &params))) ++closing;
  }
  const double end = base::steady_seconds() + drain_limit;
  while (closing != 0 && base::steady_seconds() < end) {
    const std::lock_guard guard(mutex_);
    library_.worker_progress(worker_);
    sched_yield();
  }
  if (closing == 0) library_.worker_destroy(worker_);  // else it is leaked, with what refers to it
}

void Connections::set_address(int rank, std::span<const std::byte> address) {
  peer(rank).address.assign(address.begin(), address.end());
}

std::vector<std::byte> Connections::own_address() {
  const std::lock_guard guard(mutex_);
  WorkerAttributes attributes;
  attributes.field_mask = WorkerAttributes::has_address;
  check(library_, library_.worker_query(worker_, &attributes), "asking for the address of a worker");
  const auto* const bytes = reinterpret_cast<const std::byte*>(attributes.address);
  std::vector<std::byte> address(bytes, bytes + attributes.address_length);
  library_.worker_release_address(worker_, attributes.address);
  return address;
}

void Connections::connect(int rank) {
  const std::lock_guard guard(mutex_);
  Peer& to = peer(rank);
  if (to.end != nullptr) return;
  EndParams params;
  params.field_mask = EndParams::has_address;
  params.address = reinterpret_cast<const Address*>(to.address.data());
  if (rank != rank_) {  // the way of a rank to itself cannot fail, and UCX refuses to watch it
    params.field_mask |= EndParams::has_error_mode | EndParams::has_error_handler;
    params.error_mode = ErrorHandling::peer;
    params.error_handler.call = &Connections::failed;
    params.error_handler.argument = &to;
  }
  const std::string step = "connecting rank " + std::to_string(rank_) + " to rank " + std::to_string(rank) +
                           " (is there a network between their hosts? networks here: " +
                           (context_.networks.empty() ? "none" : context_.networks) + ")";
  check(library_, library_.end_create(worker_, &params, &to.end), step);
}

void Connections::enlist(Kind kind, int rank, std::uint32_t channel, Inbox* inbox) {
  const std::lock_guard guard(mutex_);
  auto& inboxes = inboxes_.at(static_cast<std::size_t>(kind));
  if (inbox == nullptr) {
    inboxes.erase(key_of({rank, channel}));
  } else {
    inboxes[key_of({rank, channel})] = inbox;
  }
}

void Connections::issued(Peer& to, void* returned, std::uint32_t* pending) {
  if (is_request(returned)) {
    if (pending != nullptr) ++*pending;
    return;
  }
  if (static_cast<int>(status_of(returned)) < 0) failed(&to, to.end, status_of(returned));
}

void Connections::send(int rank, Kind kind, const void* header, std::size_t header_bytes, const std::byte* data,
                       std::size_t bytes, std::uint32_t* pending) {
  const std::lock_guard guard(mutex_);
  Peer& to = peer(rank);
  if (lost(rank)) return;
  RequestParams params;
  params.field_mask = RequestParams::has_flags | RequestParams::has_callback | RequestParams::has_user_data;
  params.flags = RequestParams::eager | RequestParams::copy_header;
  params.call = &Connections::completed;
  params.user_data = pending;
  issued(to, library_.message_send(to.end, static_cast<unsigned>(kind), header, header_bytes, data, bytes, &params),
         pending);
}

void Connections::put(int rank, RemoteKey* key, const Written& data, const Written& flag, std::uint32_t* pending) {
  const std::lock_guard guard(mutex_);
  Peer& to = peer(rank);
  if (lost(rank)) return;
  RequestParams params;
  params.field_mask = RequestParams::has_callback | RequestParams::has_user_data;
  params.call = &Connections::completed;
  params.user_data = pending;
  if (data.bytes > 0) {
    issued(to, library_.put(to.end, data.from, data.bytes, data.to, key, &params), pending);
    // Without it, the flag may overtake the data where there are several links.
    if (const Status status = library_.worker_fence(worker_); static_cast<int>(status) < 0) failed(&to, to.end, status);
  }
  issued(to, library_.put(to.end, flag.from, flag.bytes, flag.to, key, &params), pending);
}

RemoteKey* Connections::unpack_key(int rank, const std::byte* packed) {
  const std::lock_guard guard(mutex_);
  RemoteKey* key = nullptr;
  check(library_, library_.key_unpack(peer(rank).end, packed, &key), "reading the key to the slots of a channel");
  peer(rank).keys.push_back(key);
  return key;
}

void Connections::progress() {
  const std::lock_guard guard(mutex_);
  library_.worker_progress(worker_);
  if (answers_due_) answer();
}

void Connections::drive() noexcept {
  const std::unique_lock guard(mutex_, std::try_to_lock);
  if (!guard.owns_lock()) return;  // another thread drives it
  library_.worker_progress(worker_);
  if (answers_due_) answer();
}

// A rank that has sent something may call nothing of onehop for long: it computes, or waits in MPI for a rank that
// waits for this very message. What the network did not take at once would stay here, as would the answers that UCX
// expects.
void Connections::drive_until_closed() noexcept {
  while (!closed_.load(std::memory_order_relaxed)) {
    bool busy = false;
    if (const std::unique_lock guard(mutex_, std::try_to_lock); guard.owns_lock()) {
      busy = library_.worker_progress(worker_) != 0;
      if (answers_due_) answer();
    }
    std::this_thread::sleep_for(busy ? busy_period : idle_period);
  }
}

void Connections::say(int rank, Kind kind) {
  const std::int32_t own = rank_;
  send(rank, kind, &own, sizeof own, nullptr, 0, nullptr);
}

void Connections::greet(int rank) {
  const std::lock_guard guard(mutex_);
  if (rank == rank_ || peer(rank).greeted) return;
  peer(rank).greeted = true;
  say(rank, Kind::hello);
}

bool Connections::is_complete(int rank) {
  const std::lock_guard guard(mutex_);
  return rank == rank_ || (peer(rank).welcome && peer(rank).hello_answered);
}

// Answers are not sent while a message is handled, because that is inside a call of UCX.
void Connections::answer() {
  answers_due_ = false;
  for (auto& peer : peers_) {
    if (peer->end == nullptr) continue;
    if (peer->hello && !std::exchange(peer->hello_answered, true)) say(peer->rank, Kind::welcome);
    if (peer->leaving && !std::exchange(peer->leaving_answered, true)) say(peer->rank, Kind::left);
  }
}

bool Connections::lost(int rank) const noexcept {
  return peers_[static_cast<std::size_t>(rank)]->failure.load(std::memory_order_relaxed) != 0;
}

std::string Connections::why_lost(int rank) const {
  const auto status = static_cast<Status>(peers_[static_cast<std::size_t>(rank)]->failure.load());
  return library_.status_text(status);
}

void Connections::keep(Slots slots) {
  const std::lock_guard guard(mutex_);
  kept_.push_back(std::move(slots));
}

void Connections::linger(std::shared_ptr<Outgoing> outgoing) {
  const std::lock_guard guard(mutex_);
  std::erase_if(lingering_, [](const auto& one) { return one->idle(); });
  if (!outgoing->idle()) lingering_.push_back(std::move(outgoing));
}

std::string Connections::networks_to(int rank) {
  const std::lock_guard guard(mutex_);
  std::array<TransportEntry, 16> entries{};
  EndAttributes attributes;
  attributes.field_mask = EndAttributes::has_transports;
  attributes.transports.entries = entries.data();
  attributes.transports.count = static_cast<unsigned>(entries.size());
  RemoteEnd* const end = peer(rank).end;
  if (end == nullptr || lost(rank) || static_cast<int>(library_.end_query(end, &attributes)) < 0) return {};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min<std::size_t>(attributes.transports.count, entries.size()); ++i) {
    if (entries[i].transport == nullptr) continue;
    std::string name = std::string(entries[i].transport) + "/" + entries[i].device;
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void Connections::completed(void* request, Status, void* pending) {
  // Without success the connection has failed, of which failed() is told.
  if (pending != nullptr) --*static_cast<std::uint32_t*>(pending);
  request_free.load(std::memory_order_relaxed)(request);
}

void Connections::failed(void* argument, RemoteEnd*, Status status) {
  auto* const peer = static_cast<Peer*>(argument);
  int none = 0;
  peer->failure.compare_exchange_strong(none, static_cast<int>(status), std::memory_order_relaxed);
}

Status Connections::arrived(void* argument, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                            const MessageDetails*) {
  const auto* const to = static_cast<const HandlerArgument*>(argument);
  to->owner->handle(to->kind, static_cast<const std::byte*>(header), header_bytes, static_cast<const std::byte*>(data),
                    bytes);
  return Status::ok;
}

void Connections::handle(Kind kind, const std::byte* header, std::size_t header_bytes, const std::byte* data,
                         std::size_t bytes) {
  if (kind >= Kind::leaving) {
    std::int32_t from = -1;
    if (header_bytes == sizeof from) std::memcpy(&from, header, sizeof from);
    if (from < 0 || from >= static_cast<int>(peers_.size())) return;
    Peer& other = peer(from);
    other.left |= kind == Kind::left;
    other.welcome |= kind == Kind::welcome;
    other.hello |= kind == Kind::hello;
    other.leaving |= kind == Kind::leaving;
    answers_due_ |= kind == Kind::hello || kind == Kind::leaving;
    return;
  }
  Destination to;
  if (header_bytes < sizeof to) return;
  std::memcpy(&to, header, sizeof to);
  const auto& inboxes = inboxes_.at(static_cast<std::size_t>(kind));
  const auto found = inboxes.find(key_of(to));
  if (found != inboxes.end()) found->second->arrived(header, header_bytes, data, bytes);  // else its end is closed
}

}  // namespace onehop::detail::ucx
