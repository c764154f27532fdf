#include "onehop/channel.h"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <tuple>

#include "src/base/names.h"
#include "src/channel/channel_agreement.h"
#include "src/channel/channel_specs.h"
#include "src/channel/staging.h"
#include "src/group/agreement.h"
#include "src/group/group_state.h"

namespace onehop {
namespace {

constexpr detail::NamedValue<TransportKind> transports[] = {{TransportKind::automatic, "auto"},
                                                            {TransportKind::shared_memory, "shared_memory"},
                                                            {TransportKind::mpi, "mpi"},
                                                            {TransportKind::ucx, "ucx"},
                                                            {TransportKind::mock, "mock"}};

}  // namespace

TransportKind transport_from_string(std::string_view name) { return detail::value_of(name, transports, "a transport"); }
std::string_view to_string(TransportKind kind) { return detail::name_of(kind, transports); }

namespace {

using Key = std::tuple<bool, int, int>;  // sends, peer, tag

// The transports that a TransportKind allows, and the one that carries the channels to each rank.
struct Routes {
  std::vector<detail::Transport*> transports;
  std::unique_ptr<detail::Transport> mock;
  std::string without_ucx;  // why there is none, if that matters

  Routes(detail::GroupState& group, TransportKind kind) {
    if (kind == TransportKind::mock) {
      mock = detail::make_mock_transport();
      transports = {mock.get()};
      return;
    }
    if (kind == TransportKind::automatic || kind == TransportKind::shared_memory) {
      if (group.shared_memory == nullptr) group.shared_memory = detail::make_shared_memory_transport(group);
      transports.push_back(group.shared_memory.get());
    }
    if (detail::Transport* between = network(group, kind)) transports.push_back(between);
    if (kind == TransportKind::automatic) without_ucx = group.without_ucx;
    if (transports.empty()) {
      throw BadInput("the transport 'mpi' needs a group made from MPI, and this one comes from '" + group.origin +
                     "'; start the program with mpiexec");
    }
  }

  [[nodiscard]] static bool uses_ucx(const detail::GroupState& group, TransportKind kind) {
    if (kind != TransportKind::automatic) return kind == TransportKind::ucx;
    return group.spans_hosts && (group.remote == nullptr || group.prefers_ucx);
  }

  // The transport between hosts; null if there is none. Makes UCX's with the first channels that need it, which is
  // collective: whether it is made depends on nothing that differs between ranks.
  [[nodiscard]] static detail::Transport* network(detail::GroupState& group, TransportKind kind) {
    if (!uses_ucx(group, kind)) return kind == TransportKind::shared_memory ? nullptr : group.remote.get();
    if (group.ucx == nullptr && group.without_ucx.empty()) {
      try {
        group.ucx = detail::make_ucx_transport(group);
      } catch (const Mismatch&) {
        throw;
      } catch (const PeerLost&) {
        throw;
      } catch (const Timeout&) {
        throw;
      } catch (const Error& error) {
        group.without_ucx = error.what();  // it throws on every rank
      }
    }
    if (kind == TransportKind::ucx && group.ucx == nullptr) throw Error(group.without_ucx);
    return group.ucx.get();
  }

  // Index of the transport that reaches `rank`; throws if none does.
  [[nodiscard]] std::size_t to(int rank) const {
    std::string why = without_ucx;
    for (std::size_t i = 0; i < transports.size(); ++i) {
      const std::string trouble = transports[i]->unreachable(rank);
      if (trouble.empty()) return i;
      why += (why.empty() ? "" : "; ") + trouble;
    }
    throw Error("no channel to rank " + std::to_string(rank) + " is possible: " + why +
                "; ranks on several machines need UCX or an MPI launcher");
  }

  // "shared_memory, mpi"
  [[nodiscard]] std::string names() const {
    std::string all;
    for (const detail::Transport* transport : transports)
      all += (all.empty() ? "" : ", ") + std::string(transport->name());
    return all;
  }
};

// This rank's requests with all defaults filled in. Throws if no transport can serve one; errors that all ranks can
// detect are left to match().
std::vector<detail::Wanted> requests(const detail::GroupState& group, std::span<const ChannelSpec> specs,
                                     const Routes& routes) {
  std::int64_t slot_limit = std::numeric_limits<std::int64_t>::max();
  for (const detail::Transport* transport : routes.transports)
    slot_limit = std::min(slot_limit, transport->max_slot_bytes());
  std::vector<detail::Wanted> own;
  own.reserve(specs.size());
  for (const ChannelSpec& spec : specs) {
    own.push_back(detail::wanted(spec, group.rank));
    own.back().slot_bytes = std::min(own.back().slot_bytes, slot_limit);
    if (spec.peer >= 0 && spec.peer < group.size) static_cast<void>(routes.to(spec.peer));
  }
  return own;
}

}  // namespace

void refuse_channels(const Group& group, const std::string& why) {
  try {
    detail::exchange_refusal(*group.state(), why);
  } catch (const Error&) {
    return;  // a lost peer, for example; the error that this rank throws next says more
  }
}

namespace {

Channels open(const Group& group, std::span<const ChannelSpec> specs, TransportKind kind, bool backed) {
  const std::shared_ptr<detail::GroupState>& state = group.state();
  std::optional<Routes> routes;
  std::vector<detail::Wanted> own;
  try {
    routes.emplace(*state, kind);
    own = requests(*state, specs, *routes);
  } catch (const Mismatch&) {
    throw;  // found in a collective step, by every rank: another step would wait for a rank that makes other ones
  } catch (const std::exception& error) {
    refuse_channels(group, error.what());
    throw;
  }
  const auto shapes = detail::agree_on_channels(*state, own, routes->names(), backed);

  std::vector<std::vector<detail::ChannelShape>> by_transport(routes->transports.size());
  for (const detail::ChannelShape& shape : shapes) {
    by_transport[routes->to(shape.from == state->rank ? shape.to : shape.from)].push_back(shape);
  }
  std::map<Key, Sender> senders;
  std::map<Key, Receiver> receivers;
  for (std::size_t i = 0; i < by_transport.size(); ++i) {
    detail::Transport& transport = *routes->transports[i];
    detail::Opened opened =
        backed ? transport.open(state, by_transport[i]) : transport.open_unbacked(state, by_transport[i]);
    for (auto& parts : opened.senders) {
      const detail::ChannelShape shape = parts.endpoint->shape();
      senders.emplace(Key{true, shape.to, shape.tag}, std::move(parts));
    }
    for (auto& parts : opened.receivers) {
      const detail::ChannelShape shape = parts.endpoint->shape();
      receivers.emplace(Key{false, shape.from, shape.tag}, std::move(parts));
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

}  // namespace

Channels open_channels(const Group& group, std::span<const ChannelSpec> specs, TransportKind kind) {
  return open(group, specs, kind, true);
}

Channels open_channels_unbacked(const Group& group, std::span<const ChannelSpec> specs, TransportKind kind) {
  return open(group, specs, kind, false);
}

std::string carrier(const Group& group, int rank, TransportKind kind) {
  const detail::GroupState& state = *group.state();
  if (kind == TransportKind::mock) return "mock";
  const bool may_share = kind == TransportKind::automatic || kind == TransportKind::shared_memory;
  if (may_share && state.shares_memory(rank)) return "shared_memory";
  const detail::Transport* const between = Routes::uses_ucx(state, kind) ? state.ucx.get() : state.remote.get();
  if (between == nullptr) return {};
  const std::string more = between->describe(rank);
  return std::string(between->name()) + (more.empty() ? "" : ": " + more);
}

}  // namespace onehop
