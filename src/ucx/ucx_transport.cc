// The transport over UCX. docs/design/protocol.md, "Other transports".
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "src/base/env.h"
#include "src/channel/channel_agreement.h"
#include "src/channel/wait_limits.h"
#include "src/channel/waiting.h"
#include "src/group/agreement.h"
#include "src/group/group_state.h"
#include "src/group/leaving.h"
#include "src/group/local_socket.h"
#include "src/ucx/ends.h"
#include "src/ucx/interfaces.h"

namespace onehop::detail {
namespace ucx {
namespace {

// The first bytes that ranks send each other. Their interfaces follow, or the reason why this rank cannot take part.
struct Hello {
  static constexpr std::uint64_t magic = 0x6f6c'6c65'6878'6375;  // no other collective step begins with it
  std::uint64_t mark = magic;
  std::int32_t usable = 0;
  std::int32_t puts = 0;  // whether this rank's slots can be, or shall be, written by other ranks
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::array<char, 16> version{};
  // How many interfaces ONEHOP_RAILS names.
  static constexpr std::int32_t common = 0;        // one rail for each network that all ranks have
  static constexpr std::int32_t one_for_all = -1;  // one rail for all networks, among which UCX chooses
  std::int32_t rails = one_for_all;
  std::int32_t mode = 0;   // ONEHOP_UCX_MODE, a place in `modes`
  std::uint64_t down = 0;  // those of the named interfaces that are down, a bit for each
};

constexpr std::array<std::string_view, 3> modes{"auto", "messages", "puts"};

// What ONEHOP_UCX_MODE asks for.
bool wants_puts(const ProcessContext& context, std::string_view mode) {
  return mode == "auto" ? context.writes_remotely : mode == "puts";
}

std::vector<std::byte> packed(const Hello& hello, std::span<const std::byte> rest) {
  std::vector<std::byte> bytes(sizeof hello + rest.size());
  std::memcpy(bytes.data(), &hello, sizeof hello);
  if (!rest.empty()) std::memcpy(bytes.data() + sizeof hello, rest.data(), rest.size());
  return bytes;
}

// What this rank can do. Throws BadInput or Error if it cannot take part.
Hello greeting() {
  Hello own;
  const ProcessContext& context = process_context();
  own.major = context.library.major;
  own.minor = context.library.minor;
  context.library.version.copy(own.version.data(), own.version.size() - 1);
  const std::string mode = env::choice("ONEHOP_UCX_MODE");
  own.mode = static_cast<std::int32_t>(std::ranges::find(modes, mode) - modes.begin());
  own.puts = wants_puts(context, mode) ? 1 : 0;
  const std::vector<RailDevice> named = named_rails();
  if (own.puts == 0 && !named.empty()) {  // UCX distributes puts itself
    own.rails = static_cast<std::int32_t>(named.size());
    for (std::size_t k = 0; k < std::min(named.size(), RailStates::most_rails); ++k) {
      if (is_down(named[k].device)) own.down |= RailStates::bit(k);
    }
  } else if (own.puts == 0 && context.only_tcp && env::text("ONEHOP_RAILS").value_or("auto") == "auto") {
    own.rails = Hello::common;
  }
  own.usable = 1;
  return own;
}

// The hello of a rank. Throws Mismatch for a contribution to another step.
Hello hello_of(std::span<const std::byte> bytes, std::size_t rank) {
  Hello hello;
  hello.mark = 0;
  if (bytes.size() >= sizeof hello) std::memcpy(&hello, bytes.data(), sizeof hello);
  if (hello.mark == Hello::magic) return hello;
  throw Mismatch("opening channels over UCX: rank " + std::to_string(rank) +
                 " is in another collective step, or asks for another transport; do all ranks make the same steps?");
}

// The rails of this rank: those that it names, those that all ranks have, or one for all networks.
std::vector<RailDevice> rail_devices(const GroupState& group, const Gathered& all) {
  std::int32_t rails = hello_of(all[0], 0).rails;
  std::uint64_t down = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    const std::int32_t theirs = hello_of(all[r], r).rails;
    if (theirs != rails && (theirs > 0 || rails > 0)) {
      throw Mismatch("ONEHOP_RAILS names " + std::to_string(std::max(rails, 0)) + " interfaces on rank 0, but " +
                     std::to_string(std::max(theirs, 0)) + " on rank " + std::to_string(r) +
                     "; every rank needs as many, in the same order of networks");
    }
    rails = std::min(rails, theirs);
    down |= hello_of(all[r], r).down;
  }
  if (rails == Hello::one_for_all) return {};
  if (rails > 0) {
    std::vector<RailDevice> named = named_rails();
    std::vector<RailDevice> up;
    for (std::size_t k = 0; k < named.size(); ++k) {
      if (k >= RailStates::most_rails || (down & RailStates::bit(k)) == 0) up.push_back(named[k]);
    }
    return up.empty() ? named : up;
  }
  std::vector<std::vector<Interface>> interfaces;
  std::vector<std::string> hosts;
  for (std::size_t r = 0; r < all.size(); ++r) {
    const auto bytes = all[r].subspan(sizeof(Hello));
    auto& theirs = interfaces.emplace_back(bytes.size() / sizeof(Interface));
    if (!theirs.empty()) std::memcpy(theirs.data(), bytes.data(), theirs.size() * sizeof(Interface));
    hosts.push_back(*group.pages[r].host);
  }
  return common_rails(interfaces, hosts, group.rank);
}

// Gathers the hello of each rank and `rest`. Throws the same error on every rank if one cannot take part.
Gathered exchange(GroupState& group, const Hello& own, std::span<const std::byte> rest,
                  const std::exception_ptr& failure) {
  const std::string words = failure ? message_of(failure) : std::string();
  if (failure) rest = std::as_bytes(std::span(words));
  Gathered all = group.allgather(packed(own, rest));
  if (failure) std::rethrow_exception(failure);
  throw_refusal(group, all, "opening channels");
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (hello_of(all[r], r).usable != 0) continue;
    const std::span<const std::byte> theirs = all[r].subspan(sizeof(Hello));
    throw_failed(group, "opening channels over UCX", r, theirs);
  }
  return all;
}

// The ranks with which this one probes the rails: if it is the first rank of its host, those of the hosts that are 1,
// 2, 4, ... places behind and before it. So few connections meet every host, and every pair of up to five hosts.
std::vector<int> probed_ranks(const GroupState& group) {
  std::vector<int> firsts;
  std::set<std::string_view> hosts;
  for (int r = 0; r < group.size; ++r) {
    if (hosts.insert(*group.pages[static_cast<std::size_t>(r)].host).second) firsts.push_back(r);
  }
  const auto own = std::ranges::find(firsts, group.rank);
  std::set<int> probed;
  if (own == firsts.end()) return {};
  const auto count = static_cast<std::size_t>(firsts.size());
  const auto at = static_cast<std::size_t>(own - firsts.begin());
  for (std::size_t step = 1; step < count; step *= 2) {
    probed.insert(firsts[(at + step) % count]);
    probed.insert(firsts[(at + count - step) % count]);
  }
  return {probed.begin(), probed.end()};
}

// Devices of this process, over all its groups.
class Devices {
 public:
  bool contain(const std::string& device) {
    const std::lock_guard guard(mutex_);
    return names_.contains(device);
  }
  // Returns whether it is new.
  bool insert(const std::string& device) {
    const std::lock_guard guard(mutex_);
    return names_.insert(device).second;
  }
  void erase(const std::string& device) {
    const std::lock_guard guard(mutex_);
    names_.erase(device);
  }

 private:
  std::mutex mutex_;
  std::set<std::string> names_;
};

// Those that earlier groups have left out, and have not heard again. Never destroyed: groups may be made until the end.
Devices& silent_devices() {
  static auto* const all = new Devices;
  return *all;
}

// How long a rail may take to answer: two packets may be lost that begin a connection, which TCP sends again after 1
// and 3 seconds.
double probe_seconds(const GroupState& group) {
  constexpr double most = 5;
  return group.timeout > 0 ? std::min(most, group.timeout / 2) : most;
}

// Shows in this rank's page whether a rail is down. One of the two hosts says so: the first of its ranks that sees it,
// once for each interface. An abstract name, which lasts as long as the process, keeps the others from it.
void tell_of_rail(GroupState& group, const std::string& device, int rank, bool works) {
  note_device(group.own_page(), device, works);
  if (works) {
    silent_devices().erase(device);
  } else {
    silent_devices().insert(device);  // new groups do not wait for it
  }
  const PeerPage& own = group.pages[static_cast<std::size_t>(group.rank)];
  const PeerPage& other = group.pages[static_cast<std::size_t>(rank)];
  if (works || *other.host < *own.host) return;
  Socket claim = new_socket();
  const SocketName name("onehop-rail-" + std::to_string(group.world) + "-" + device);
  if (::bind(claim.fd(), name.address(), name.length) != 0) return;
  static_cast<void>(claim.release());
  std::fprintf(stderr,
               "onehop: nothing arrives through %s between %s and %s; messages use the other interfaces until it works "
               "again\n",
               device.c_str(), own.machine->c_str(), other.machine->c_str());
}

// UCX chooses among all interfaces. One that has gone down since UCX was started keeps it from working; then among
// those that are up.
std::shared_ptr<Connections> connections_over_all(const GroupState& group) {
  const auto over = [&group](const std::string& devices) {
    const RailChoice all{&process_context(devices), 1};
    return std::make_shared<Connections>(std::span(&all, 1), group.rank, group.size);
  };
  std::shared_ptr<Connections> made;
  const std::exception_ptr failure = failure_of([&] { made = over(""); });
  if (made) return made;
  std::string up;
  for (const Interface& one : network_interfaces()) up += (up.empty() ? "" : ",") + std::string(one.device());
  if (up.empty() || !process_context().only_tcp) std::rethrow_exception(failure);
  return over(up);
}

// Throws Mismatch if versions or modes differ. Returns whether all ranks use puts.
bool check_versions(const Gathered& all) {
  const Hello first = hello_of(all[0], 0);
  bool puts = true;
  for (std::size_t r = 0; r < all.size(); ++r) {
    const Hello hello = hello_of(all[r], r);
    if (hello.major != first.major || hello.minor != first.minor) {
      throw Mismatch("rank 0 has UCX " + std::string(first.version.data()) + ", but rank " + std::to_string(r) +
                     " has UCX " + hello.version.data() +
                     "; versions may speak differently: let all ranks load the same one (ONEHOP_UCX)");
    }
    if (hello.mode != first.mode) {
      const auto name = [](const Hello& one) { return std::string(modes.at(static_cast<std::size_t>(one.mode))); };
      throw Mismatch("ONEHOP_UCX_MODE is '" + name(first) + "' on rank 0, but '" + name(hello) + "' on rank " +
                     std::to_string(r) +
                     "; all ranks need the same mode (does the launcher pass the variable on to other hosts?)");
    }
    puts = puts && hello.puts != 0;
  }
  return puts;
}

}  // namespace

class UcxTransport final : public Transport {
 public:
  // Collective. Throws the same error on every rank.
  explicit UcxTransport(GroupState& group) {
    Hello own;
    std::vector<std::byte> rest;
    std::exception_ptr failure = failure_of([&] {
      own = greeting();
      if (own.rails != Hello::common) return;
      const std::vector<Interface> interfaces = network_interfaces();
      const auto bytes = std::as_bytes(std::span(interfaces));
      rest.assign(bytes.begin(), bytes.end());
    });
    const Gathered all = exchange(group, own, rest, failure);
    puts_ = check_versions(all);
    std::vector<RailDevice> devices = rail_devices(group, all);
    if (devices.size() > RailStates::most_rails) devices.resize(RailStates::most_rails);
    failure = failure_of([&] {
      std::vector<RailChoice> rails;
      for (const auto& [device, speed] : devices) rails.push_back({&process_context(device), speed});
      connections_ =
          rails.empty() ? connections_over_all(group) : std::make_shared<Connections>(rails, group.rank, group.size);
      rest = connections_->own_addresses();
    });
    if (failure) own.usable = 0;
    const Gathered addresses = exchange(group, own, rest, failure);
    for (std::size_t r = 0; r < addresses.size(); ++r) {
      hello_of(addresses[r], r);
      // Ranks of this host are reached through its memory.
      const bool same_host = group.pages[r].host == group.pages[static_cast<std::size_t>(group.rank)].host;
      connections_->set_addresses(static_cast<int>(r), addresses[r].subspan(sizeof(Hello)),
                                  same_host ? 1 : std::numeric_limits<std::size_t>::max());
    }
    leave_out_silent_rails(group, own, devices);
    report_through(group, connections_);
    connections_->set_news(
        [&group](const std::string& device, int rank, bool works) { tell_of_rail(group, device, rank, works); });
  }
  ~UcxTransport() override { connections_->set_news({}); }
  UcxTransport(const UcxTransport&) = delete;
  UcxTransport& operator=(const UcxTransport&) = delete;

  std::string_view name() const override { return "ucx"; }
  std::string unreachable(int) const override { return ""; }
  std::string describe(int rank) const override {
    const std::string networks = connections_->networks_to(rank);
    return std::string(puts_ ? "puts" : "active messages") + (networks.empty() ? "" : " over " + networks);
  }

  Opened open(const std::shared_ptr<GroupState>& group, std::span<const ChannelShape> shapes) override {
    std::vector<std::shared_ptr<SendEnd>> senders;
    std::vector<std::shared_ptr<ReceiveEnd>> receivers;
    const std::exception_ptr failure = failure_of([&] {
      for (const ChannelShape& shape : shapes) {
        if (shape.from == group->rank) {
          senders.emplace_back(new SendEnd(group, shape, connections_, puts_), &SendEnd::retire);
        }
        if (shape.to == group->rank)
          receivers.push_back(std::make_shared<ReceiveEnd>(group, shape, connections_, puts_));
      }
    });
    agree(*group, "opening channels over UCX", failure);
    for (const auto& end : receivers) end->announce();
    for (const auto& end : senders) connections_->greet(end->shape().to);
    for (const auto& end : receivers) connections_->greet(end->shape().from);
    // Rails from which no answer came may be slow, but what that took counts.
    const double spent = std::exchange(probed_seconds_, 0);
    const double end_of_wait = group->timeout > 0 && spent > 0 ? base::steady_seconds() + group->timeout - spent : 0;
    for (const auto& end : senders) await(*group, *end, end->shape().to, end_of_wait, [&] { return end->can_send(); });
    for (const auto& end : receivers) await(*group, *end, end->shape().from, end_of_wait, [] { return true; });
    Opened opened;
    for (auto& end : senders) {
      opened.senders.push_back({end->ring(), &end->released_word, &always_up(), end});
    }
    for (auto& end : receivers) {
      const std::uint64_t mask = release_mask(static_cast<int>(end->ring().slots));
      opened.receivers.push_back({end->ring(), &end->released_word, &always_up(), mask, end});
    }
    return opened;
  }

 private:
  // A network that drops packets in silence would end the run, which the others can carry. If none answers, all stay:
  // the ranks may only be slow, and else the first channel says what is wrong.
  void leave_out_silent_rails(GroupState& group, const Hello& own, const std::vector<RailDevice>& devices) {
    if (devices.size() < 2) return;
    const double begin = base::steady_seconds();
    std::vector<std::int32_t> silent(devices.size(), -1);
    const std::exception_ptr failure = failure_of([&] {
      // A device that was silent in an earlier group need not be waited for again.
      for (std::size_t k = 0; k < devices.size(); ++k) {
        if (silent_devices().contain(devices[k].device)) silent[k] = group.rank;
      }
      if (const std::vector<int> ranks = probed_ranks(group); !ranks.empty()) {
        connections_->probe(ranks, probe_seconds(group), silent);
      }
    });
    const Gathered all = exchange(group, own, std::as_bytes(std::span(silent)), failure);
    std::vector<bool> answers(devices.size(), true);
    std::string left_out;
    for (std::size_t r = 0; r < all.size(); ++r) {
      const std::span<const std::byte> theirs = all[r].subspan(sizeof(Hello));
      std::memcpy(silent.data(), theirs.data(), std::min(theirs.size(), silent.size() * sizeof(std::int32_t)));
      for (std::size_t k = 0; k < devices.size(); ++k) {
        if (silent[k] < 0 || silent[k] >= group.size || !answers[k]) continue;
        answers[k] = false;
        left_out += silent_rail(group, devices[k], static_cast<int>(r), silent[k]);
      }
    }
    if (std::ranges::find(answers, false) == answers.end()) return;
    if (std::ranges::find(answers, true) == answers.end()) {
      probed_seconds_ = base::steady_seconds() - begin;
      return;
    }
    connections_->keep_rails(answers);
    std::string kept;
    for (std::size_t k = 0; k < devices.size(); ++k) {
      if (answers[k]) kept += (kept.empty() ? "" : ",") + devices[k].device;
      if (!answers[k]) silent_devices().insert(devices[k].device);
    }
    if (group.rank != 0 || left_out.empty()) return;
    std::fprintf(stderr,
                 "onehop: messages between hosts use %s, not %s; does a firewall or a switch drop packets there? "
                 "ONEHOP_RAILS=%s leaves it out from the start\n",
                 kept.c_str(), left_out.substr(2).c_str(), kept.c_str());
  }

  // ", e1, through which rank 0 has had no answer from rank 2"; empty if this process has said so before.
  static std::string silent_rail(const GroupState& group, const RailDevice& rail, int asked, int silent) {
    if (silent_devices().contain(rail.device)) return "";
    const std::string who = asked == silent ? "another one before" : group.name_of(silent);
    return ", " + rail.device + ", through which " + group.name_of(asked) + " has had no answer from " + who;
  }

  static const std::atomic<std::uint32_t>& always_up() {
    static constinit std::atomic<std::uint32_t> word{1};
    return word;
  }

  // Waits until the connection is complete, so that messages leave without further calls, and until `more()`; until
  // `end_of_wait` at most, unless that is 0.
  template <class More>
  void await(GroupState& group, Endpoint& end, int peer, double end_of_wait, const More& more) {
    Waiting waiting(group, true);
    const auto ready = [&] { return connections_->is_complete(peer) && more(); };
    const auto describe = [&] {
      return WaitingFor{peer, end.name() + ", whose connection is not complete (" + connections_->networks() +
                                  "; does a firewall drop packets there? ONEHOP_RAILS or UCX_NET_DEVICES chooses "
                                  "other interfaces),"};
    };
    while (!ready()) {
      end.progress();
      waiting.idle(ready, describe);
      if (end_of_wait == 0 || base::steady_seconds() < end_of_wait) continue;
      throw Timeout("rank " + std::to_string(group.rank) + " waited for rank " + std::to_string(peer) + " in " +
                    describe().what + " longer than the timeout of the group");
    }
  }

  std::shared_ptr<Connections> connections_;
  bool puts_ = false;
  double probed_seconds_ = 0;  // what it took to find that no rail answers; 0: one does
};

}  // namespace ucx

std::unique_ptr<Transport> make_ucx_transport(GroupState& group) { return std::make_unique<ucx::UcxTransport>(group); }

}  // namespace onehop::detail
