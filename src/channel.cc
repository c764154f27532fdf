#include "onehop/channel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <tuple>

#include "channel_specs.h"
#include "group_state.h"
#include "store.h"
#include "waiting.h"

namespace onehop {
namespace {

constexpr std::array<std::string_view, 4> transport_names = {"automatic", "shared_memory", "mpi", "mock"};

[[noreturn]] void throw_size(const detail::Endpoint& end, std::int64_t expected, std::size_t found) {
  throw BadInput(end.name() + " carries messages of " + std::to_string(expected) + " bytes, but " +
                 std::to_string(found) + " were given");
}

[[noreturn]] void throw_in_place(const detail::Endpoint& end, const detail::SlotRing& ring) {
  throw BadInput(end.name() + ": a message of " + std::to_string(ring.message_bytes) +
                 " bytes is longer than a slot (" + std::to_string(ring.slot_bytes) +
                 " bytes) and cannot be used in place; use put(message) and get(message), or "
                 "ask for a larger slot_bytes");
}

// Waits until `ready()`.
template <class Ready>
void wait_until(detail::Endpoint& end, int peer, const Ready& ready) {
  const bool polls = end.needs_progress();
  detail::Waiting waiting(end.group(), polls);
  while (!ready()) {
    if (polls) end.progress();
    waiting.idle(ready, [&] { return detail::WaitingFor{peer, end.name()}; });
  }
}

}  // namespace

TransportKind transport_from_string(std::string_view name) {
  if (name == "auto") return TransportKind::automatic;
  const auto found = std::find(transport_names.begin(), transport_names.end(), name);
  if (found == transport_names.end()) {
    throw BadInput("unknown transport \"" + std::string(name) + "\"; known: auto, shared_memory, mpi, mock");
  }
  return static_cast<TransportKind>(found - transport_names.begin());
}

std::string_view to_string(TransportKind kind) { return transport_names.at(static_cast<std::size_t>(kind)); }

void Sender::wait_released() {
  wait_until(*endpoint_, peer_, [this] { return ready(); });
}

void Sender::ring_bell(std::uint64_t chunks, std::int64_t bytes) { endpoint_->published(use_ + 1, chunks, bytes); }
void Sender::throw_not_in_place() const { throw_in_place(*endpoint_, ring_); }
void Sender::progress() { endpoint_->progress(); }
bool Sender::needs_progress() const { return endpoint_->needs_progress(); }

void Sender::put_in_chunks(std::span<const std::byte> message) {
  if (static_cast<std::int64_t>(message.size()) != ring_.message_bytes) {
    throw_size(*endpoint_, ring_.message_bytes, message.size());
  }
  const detail::StoreFunction store = detail::store_function(stores_);
  const std::int64_t total = ring_.message_bytes;
  std::int64_t begin = 0;
  do {
    if (!ready()) wait_released();
    const std::int64_t length = std::min(ring_.slot_bytes, total - begin);
    std::byte* to = payload();
    const std::byte* from = message.data() + begin;
    std::uint64_t chunks = 0;
    for (std::int64_t at = 0; at < length; at += ring_.chunk_bytes) {
      const std::int64_t end = std::min(at + ring_.chunk_bytes, length);
      store(to + at, from + at, static_cast<std::size_t>(end - at));
      publish(end == length ? detail::whole : ++chunks, end);
    }
    if (length == 0) publish(detail::whole, 0);
    advance();
    begin += length;
  } while (begin < total);
}

void Receiver::wait_arrived(std::uint64_t colour) {
  wait_until(*endpoint_, peer_, [this, colour] { return arrived() >= colour; });
}

void Receiver::ring_bell() { endpoint_->released(use_); }
void Receiver::throw_not_in_place() const { throw_in_place(*endpoint_, ring_); }
void Receiver::progress() { endpoint_->progress(); }
bool Receiver::needs_progress() const { return endpoint_->needs_progress(); }

void Receiver::get(std::span<std::byte> message) {
  const std::int64_t total = ring_.message_bytes;
  if (static_cast<std::int64_t>(message.size()) != total) throw_size(*endpoint_, total, message.size());
  std::int64_t begin = 0;
  do {
    const std::int64_t length = std::min(ring_.slot_bytes, total - begin);
    const std::byte* from = payload();
    std::byte* to = message.data() + begin;
    std::uint64_t chunks = 0;
    for (std::int64_t at = 0; at < length; at += ring_.chunk_bytes) {
      const std::int64_t end = std::min(at + ring_.chunk_bytes, length);
      const std::uint64_t wanted = detail::colour(use_ + 1, end == length ? detail::whole : ++chunks);
      if (arrived() < wanted) wait_arrived(wanted);
      std::memcpy(to + at, from + at, static_cast<std::size_t>(end - at));
    }
    if (length == 0 && !ready()) wait_arrived(detail::colour(use_ + 1, detail::whole));
    release();
    begin += length;
  } while (begin < total);
}

// Makes ends of the parts that a transport gives.
struct ChannelAccess {
  static Sender sender(detail::SenderParts parts) {
    Sender made;
    const detail::ChannelShape& shape = parts.endpoint->shape();
    made.ring_ = parts.ring;
    made.at_ = parts.ring.first;
    made.released_ = parts.released;
    made.bell_ = parts.bell;
    made.stores_ = shape.stores;
    made.peer_ = shape.to;
    made.single_chunk_ =
        shape.bytes <= shape.slot_bytes && shape.bytes <= shape.chunk_bytes && shape.stores == StoreKind::plain;
    made.endpoint_ = std::move(parts.endpoint);
    return made;
  }

  static Receiver receiver(detail::ReceiverParts parts) {
    Receiver made;
    made.ring_ = parts.ring;
    made.at_ = parts.ring.first;
    made.released_ = parts.released;
    made.bell_ = parts.bell;
    made.release_mask_ = parts.release_mask;
    made.peer_ = parts.endpoint->shape().from;
    made.endpoint_ = std::move(parts.endpoint);
    return made;
  }
};

namespace {

using Key = std::tuple<bool, int, int>;  // sends, peer, tag

// The transports in use for a choice, and which of them carries the channels to a rank.
struct Routes {
  std::vector<detail::Transport*> transports;
  std::unique_ptr<detail::Transport> mock;

  Routes(detail::GroupState& group, TransportKind kind) {
    if (kind == TransportKind::mock) {
      mock = detail::make_mock_transport();
      transports = {mock.get()};
      return;
    }
    if (kind != TransportKind::mpi) transports.push_back(group.shared_memory.get());
    if (kind != TransportKind::shared_memory && group.remote != nullptr) transports.push_back(group.remote.get());
    if (transports.empty()) {
      throw BadInput("the transport \"mpi\" needs a group made from MPI, and this one comes from \"" + group.origin +
                     "\"; start the program with mpiexec");
    }
  }

  // Index of the transport that reaches `rank`; throws if none does.
  [[nodiscard]] std::size_t to(int rank) const {
    std::string why;
    for (std::size_t i = 0; i < transports.size(); ++i) {
      const std::string trouble = transports[i]->unreachable(rank);
      if (trouble.empty()) return i;
      why += (why.empty() ? "" : "; ") + trouble;
    }
    throw Error("no channel to rank " + std::to_string(rank) + " is possible: " + why +
                "; start ranks on several machines with an MPI launcher");
  }
};

std::vector<detail::Wanted> gather(detail::GroupState& group, std::span<const ChannelSpec> specs,
                                   std::int64_t slot_limit) {
  std::vector<detail::Wanted> own;
  own.reserve(specs.size());
  for (const ChannelSpec& spec : specs) {
    own.push_back(detail::wanted(spec, group.rank));
    own.back().slot_bytes = std::min(own.back().slot_bytes, slot_limit);
  }
  const Gathered gathered = group.allgather(std::as_bytes(std::span<const detail::Wanted>(own)));
  std::vector<detail::Wanted> all;
  for (const auto& part : gathered) {
    const std::size_t count = part.size() / sizeof(detail::Wanted);
    const std::size_t begin = all.size();
    all.resize(begin + count);
    if (count > 0) std::memcpy(&all[begin], part.data(), count * sizeof(detail::Wanted));
  }
  return all;
}

}  // namespace

Channels open_channels(const Group& group, std::span<const ChannelSpec> specs, TransportKind kind) {
  const std::shared_ptr<detail::GroupState>& state = group.state();
  const Routes routes(*state, kind);
  std::int64_t slot_limit = std::numeric_limits<std::int64_t>::max();
  for (const detail::Transport* transport : routes.transports)
    slot_limit = std::min(slot_limit, transport->max_slot_bytes());
  const std::vector<detail::Wanted> all = gather(*state, specs, slot_limit);
  const auto shapes = detail::match(all, state->rank, state->size, state->channels_opened);
  state->channels_opened += static_cast<std::uint32_t>(all.size() / 2);

  std::vector<std::vector<detail::ChannelShape>> by_transport(routes.transports.size());
  for (const detail::ChannelShape& shape : shapes) {
    by_transport[routes.to(shape.from == state->rank ? shape.to : shape.from)].push_back(shape);
  }
  std::map<Key, Sender> senders;
  std::map<Key, Receiver> receivers;
  for (std::size_t i = 0; i < by_transport.size(); ++i) {
    detail::Opened opened = routes.transports[i]->open(state, by_transport[i]);
    for (auto& parts : opened.senders) {
      const detail::ChannelShape shape = parts.endpoint->shape();
      senders[{true, shape.to, shape.tag}] = ChannelAccess::sender(std::move(parts));
    }
    for (auto& parts : opened.receivers) {
      const detail::ChannelShape shape = parts.endpoint->shape();
      receivers[{false, shape.from, shape.tag}] = ChannelAccess::receiver(std::move(parts));
    }
  }
  Channels channels;
  for (const ChannelSpec& spec : specs) {
    if (spec.direction == ChannelSpec::Direction::send) {
      channels.senders.push_back(std::move(senders.at({true, spec.peer, spec.tag})));
    } else {
      channels.receivers.push_back(std::move(receivers.at({false, spec.peer, spec.tag})));
    }
  }
  return channels;
}

}  // namespace onehop
