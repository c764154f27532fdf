#include "src/ucx/rail.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "onehop/error.h"
#include "src/base/clock.h"
#include "src/group/bootstrap.h"

namespace onehop::detail::ucx {
namespace {

constexpr std::array kinds{Kind::part,  Kind::released, Kind::key,  Kind::leaving, Kind::left,
                           Kind::hello, Kind::welcome,  Kind::lost, Kind::alive};

// Longer than the packets of any network, because some networks lose only long ones.
constexpr std::array<std::byte, 16 << 10> probe_data{};

// The failure of a connection on which nothing arrives. UCX has only numbers up to 100.
constexpr int silence = 1000;

// Frees completed requests; set with the first worker. A process uses one library.
constinit std::atomic<void (*)(void*)> request_free{nullptr};

}  // namespace

Rail::Rail(const ProcessContext& context, int rank, int ranks, Arrivals& arrivals)
    : context_(context), library_(context.library), rank_(rank), arrivals_(arrivals) {
  request_free.store(library_.request_free, std::memory_order_relaxed);
  WorkerParams params;
  params.field_mask = WorkerParams::has_thread_mode;
  params.thread_mode = ThreadMode::serialized;
  check(library_, library_.worker_create(context.context, &params, &worker_), "making a worker");
  arguments_.reserve(kinds.size());
  for (const Kind kind : kinds) {
    HandlerParams handler;
    handler.field_mask =
        HandlerParams::has_id | HandlerParams::has_flags | HandlerParams::has_call | HandlerParams::has_argument;
    handler.id = static_cast<unsigned>(kind);
    handler.flags = HandlerParams::whole_message;
    handler.call = &Rail::arrived;
    handler.argument = &arguments_.emplace_back(HandlerArgument{this, kind});
    check(library_, library_.set_handler(worker_, &handler), "preparing for messages");
  }
  for (int r = 0; r < ranks; ++r) {
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->owner = this;
    peers_.back()->rank = r;
  }
}

Rail::~Rail() {
  if (closing_ == 0) library_.worker_destroy(worker_);  // else it is leaked
}

std::vector<std::byte> Rail::own_address() {
  WorkerAttributes attributes;
  attributes.field_mask = WorkerAttributes::has_address;
  check(library_, library_.worker_query(worker_, &attributes), "asking for the address of a worker");
  const auto* const bytes = reinterpret_cast<const std::byte*>(attributes.address);
  std::vector<std::byte> address(bytes, bytes + attributes.address_length);
  library_.worker_release_address(worker_, attributes.address);
  return address;
}

void Rail::set_address(int rank, std::span<const std::byte> address) {
  peer(rank).address.assign(address.begin(), address.end());
}

void Rail::connect(int rank) {
  Peer& to = peer(rank);
  if (to.end != nullptr) return;
  EndParams params;
  params.field_mask = EndParams::has_address;
  params.address = reinterpret_cast<const Address*>(to.address.data());
  if (rank != rank_) {  // the way of a rank to itself cannot fail, and UCX refuses to watch it
    params.field_mask |= EndParams::has_error_mode | EndParams::has_error_handler;
    params.error_mode = ErrorHandling::peer;
    params.error_handler.call = &Rail::failed;
    params.error_handler.argument = &to;
  }
  const std::string step = "connecting rank " + std::to_string(rank_) + " to rank " + std::to_string(rank) +
                           " (is there a network between their hosts? networks here: " +
                           (context_.networks.empty() ? "none" : context_.networks) + ")";
  check(library_, library_.end_create(worker_, &params, &to.end), step);
  answers_due_ |= to.hello;  // which has arrived before there was a way to answer
}

void Rail::issued(Peer& to, void* returned, std::uint32_t* pending) {
  if (is_request(returned)) {
    if (pending != nullptr) ++*pending;
    return;
  }
  if (static_cast<int>(status_of(returned)) < 0) failed(&to, to.end, status_of(returned));
}

void Rail::send(int rank, const Message& message, std::uint32_t* pending) {
  Peer& to = peer(rank);
  if (has_failed(rank)) return;
  RequestParams params;
  params.field_mask = RequestParams::has_flags | RequestParams::has_callback | RequestParams::has_user_data;
  params.flags = RequestParams::eager | RequestParams::copy_header;
  params.call = &Rail::completed;
  params.user_data = pending;
  issued(to,
         library_.message_send(to.end, static_cast<unsigned>(message.kind), message.header.data(),
                               message.header.size(), message.data.data(), message.data.size(), &params),
         pending);
}

void Rail::put(int rank, RemoteKey* key, const Written& data, const Written& flag, std::uint32_t* pending) {
  Peer& to = peer(rank);
  if (has_failed(rank)) return;
  RequestParams params;
  params.field_mask = RequestParams::has_callback | RequestParams::has_user_data;
  params.call = &Rail::completed;
  params.user_data = pending;
  if (data.bytes > 0) {
    issued(to, library_.put(to.end, data.from, data.bytes, data.to, key, &params), pending);
    // Without it, the flag may overtake the data where there are several links.
    if (const Status status = library_.worker_fence(worker_); static_cast<int>(status) < 0) failed(&to, to.end, status);
  }
  issued(to, library_.put(to.end, flag.from, flag.bytes, flag.to, key, &params), pending);
}

RemoteKey* Rail::unpack_key(int rank, const std::byte* packed) {
  RemoteKey* key = nullptr;
  check(library_, library_.key_unpack(peer(rank).end, packed, &key), "reading the key to the slots of a channel");
  peer(rank).keys.push_back(key);
  return key;
}

bool Rail::progress() {
  const bool moved = library_.worker_progress(worker_) != 0;
  if (answers_due_) answer();
  return moved;
}

void Rail::say(int rank, Kind kind) {
  const std::int32_t own = rank_;
  send(rank, {kind, bytes_of(own), {}}, nullptr);
}

void Rail::greet(int rank, bool probe) {
  if (rank == rank_ || peer(rank).greeted) return;
  peer(rank).greeted = true;
  const std::int32_t own = rank_;
  const std::span data(probe_data);
  send(rank, {Kind::hello, bytes_of(own), probe ? data : data.first(0)}, nullptr);
}

bool Rail::is_complete(int rank) const { return rank == rank_ || (peer(rank).welcome && peer(rank).hello_answered); }

// Answers are not sent while a message is handled, because that is inside a call of UCX.
void Rail::answer() {
  answers_due_ = false;
  for (auto& peer : peers_) {
    if (peer->end == nullptr) continue;
    if (peer->hello && !std::exchange(peer->hello_answered, true)) say(peer->rank, Kind::welcome);
    if (peer->leaving && !std::exchange(peer->leaving_answered, true)) say(peer->rank, Kind::left);
  }
}

int Rail::connections() const noexcept {
  return static_cast<int>(std::ranges::count_if(peers_, [](const auto& peer) { return peer->end != nullptr; }));
}

Look Rail::look(int rank, double now, double paused) noexcept {
  Peer& from = peer(rank);
  const Look found{std::exchange(from.heard, false), std::exchange(from.sign, false), from.leaving, has_failed(rank)};
  // A rank need not send before the connection is complete, nor when it has closed its group.
  if (from.end == nullptr || rank == rank_ || !is_complete(rank) || from.leaving) {
    from.heard_at.store(0, std::memory_order_relaxed);
    return found;
  }
  const double before = from.heard_at.load(std::memory_order_relaxed);
  from.heard_at.store(found.heard || before == 0 ? now : before + paused, std::memory_order_relaxed);
  return found;
}

void Rail::give_sign(int rank, const Sign& sign) {
  Peer& to = peer(rank);
  // A network that is down takes none.
  if (to.heard_at.load(std::memory_order_relaxed) == 0 || to.signs_pending > 0) return;
  send(rank, {Kind::alive, bytes_of(sign), {}}, &to.signs_pending);
}

void Rail::fail_silent(int rank) noexcept {
  if (is_connected(rank)) fail(peer(rank), silence);
}

void Rail::fail_unconnected(int rank) noexcept { fail(peer(rank), static_cast<int>(Status::unreachable)); }

bool Rail::has_failed(int rank) const noexcept { return peer(rank).failure.load(std::memory_order_acquire) != 0; }

std::string Rail::failure(int rank) const {
  const int status = peer(rank).failure.load(std::memory_order_relaxed);
  if (status == silence) return "nothing has arrived from it for longer than ONEHOP_SILENCE";
  return library_.status_text(static_cast<Status>(status));
}

void Rail::say_goodbye(int rank) {
  peer(rank).left = false;
  if (is_connected(rank)) say(rank, Kind::leaving);
}

bool Rail::goodbye_said() const {
  return std::ranges::all_of(peers_, [this](const auto& peer) {
    return peer->end == nullptr || peer->left || peer->down || has_failed(peer->rank);
  });
}

void Rail::close() {
  for (auto& peer : peers_) close(*peer);
}

void Rail::close(Peer& peer) {
  for (RemoteKey* key : peer.keys) library_.key_destroy(key);
  peer.keys.clear();
  if (peer.end == nullptr) return;
  RequestParams params;
  params.field_mask = RequestParams::has_flags | RequestParams::has_callback | RequestParams::has_user_data;
  params.flags = has_failed(peer.rank) || !peer.left ? RequestParams::force_close : 0;
  params.call = &Rail::completed;
  params.user_data = &closing_;
  if (is_request(library_.end_close(std::exchange(peer.end, nullptr), &params))) ++closing_;
}

void Rail::set_down(int rank, bool down) noexcept {
  peer(rank).down = down;
  peer(rank).tried_at = base::steady_seconds();
  peer(rank).asked = false;
}

void Rail::retry(int rank, double now, bool heard) noexcept {
  Peer& to = peer(rank);
  const bool failed = has_failed(rank);
  if (heard && is_complete(rank) && !failed) to.tried_at = now;
  // A peer that asks, or has closed its old connection, has got through just now. Otherwise the two take turns, so as
  // not to disturb each other.
  const double pause = to.asked || failed ? 0.25 : rank < rank_ ? 1.5 : 2;
  if (now - to.tried_at < pause) return;
  to.tried_at = now;
  to.asked = false;
  close(to);
  to.failure.store(0, std::memory_order_release);
  to.greeted = to.welcome = to.hello_answered = false;
  try {
    connect(rank);
    greet(rank, true);
  } catch (const Error&) {
    fail_unconnected(rank);
  }
}

std::vector<std::string> Rail::networks_to(int rank) {
  std::array<TransportEntry, 16> entries{};
  EndAttributes attributes;
  attributes.field_mask = EndAttributes::has_transports;
  attributes.transports.entries = entries.data();
  attributes.transports.count = static_cast<unsigned>(entries.size());
  RemoteEnd* const end = peer(rank).end;
  std::vector<std::string> names;
  if (end == nullptr || has_failed(rank) || static_cast<int>(library_.end_query(end, &attributes)) < 0) return names;
  for (std::size_t i = 0; i < std::min<std::size_t>(attributes.transports.count, entries.size()); ++i) {
    if (entries[i].transport == nullptr) continue;
    std::string name = std::string(entries[i].transport) + "/" + entries[i].device;
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

void Rail::completed(void* request, Status, void* pending) {
  // Without success the connection has failed, of which failed() is told.
  if (pending != nullptr) --*static_cast<std::uint32_t*>(pending);
  request_free.load(std::memory_order_relaxed)(request);
}

void Rail::failed(void* argument, RemoteEnd* end, Status status) {
  Peer& peer = *static_cast<Peer*>(argument);
  if (end == peer.end) peer.owner->fail(peer, static_cast<int>(status));
}

void Rail::fail(Peer& peer, int why) noexcept {
  if (peer.failure.load(std::memory_order_relaxed) != 0) return;
  peer.failure.store(why, std::memory_order_release);
  arrivals_.failed();
}

Status Rail::arrived(void* argument, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                     const MessageDetails*) {
  const auto* const to = static_cast<const HandlerArgument*>(argument);
  const std::span first(static_cast<const std::byte*>(header), header_bytes);
  to->owner->note_sender(to->kind, first);
  if (to->kind >= Kind::leaving && to->kind <= Kind::welcome) {
    to->owner->handle_question(to->kind, first);
  } else {
    to->owner->arrivals_.arrived({to->kind, first, std::span(static_cast<const std::byte*>(data), bytes)});
  }
  return Status::ok;
}

// Every message begins with the rank that sends it.
void Rail::note_sender(Kind kind, std::span<const std::byte> header) noexcept {
  std::int32_t from = -1;
  if (header.size() >= sizeof from) std::memcpy(&from, header.data(), sizeof from);
  if (from < 0 || from >= static_cast<int>(peers_.size())) return;
  peer(from).heard = true;
  peer(from).sign |= kind == Kind::alive;
}

void Rail::handle_question(Kind kind, std::span<const std::byte> header) {
  std::int32_t from = -1;
  if (header.size() == sizeof from) std::memcpy(&from, header.data(), sizeof from);
  if (from < 0 || from >= static_cast<int>(peers_.size())) return;
  Peer& other = peer(from);
  other.left |= kind == Kind::left;
  other.welcome |= kind == Kind::welcome;
  if (kind == Kind::hello) {
    other.hello = true;
    other.asked = true;
    other.hello_answered = false;  // a connection that was made anew asks again
  }
  if (kind == Kind::leaving) other.leaving_answered = false;  // the same after messages that were sent again
  other.leaving |= kind == Kind::leaving;
  answers_due_ |= kind == Kind::hello || kind == Kind::leaving;
}

}  // namespace onehop::detail::ucx
