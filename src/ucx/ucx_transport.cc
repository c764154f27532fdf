// The transport over UCX. docs/design/protocol.md, "Other transports".
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "onehop/error.h"
#include "src/base/env.h"
#include "src/channel/channel_specs.h"
#include "src/channel/wait_limits.h"
#include "src/channel/waiting.h"
#include "src/group/agreement.h"
#include "src/group/group_state.h"
#include "src/ucx/ends.h"

namespace onehop::detail {
namespace ucx {
namespace {

// What ranks send each other before they connect. The address of the worker follows, or the reason why there is none.
struct Hello {
  static constexpr std::uint64_t magic = 0x6f6c'6c65'6878'6375;  // no other collective step begins with it
  std::uint64_t mark = magic;
  std::int32_t usable = 0;
  std::int32_t puts = 0;  // whether this rank's slots can be, or shall be, written by other ranks
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::array<char, 16> version{};
};

// What ONEHOP_UCX_MODE asks for.
bool wants_puts(const ProcessContext& context) {
  const std::string mode = env::choice("ONEHOP_UCX_MODE");
  return mode == "auto" ? context.writes_remotely : mode == "puts";
}

std::vector<std::byte> packed(const Hello& hello, std::span<const std::byte> rest) {
  std::vector<std::byte> bytes(sizeof hello + rest.size());
  std::memcpy(bytes.data(), &hello, sizeof hello);
  if (!rest.empty()) std::memcpy(bytes.data() + sizeof hello, rest.data(), rest.size());
  return bytes;
}

// The hello of a rank. Throws Mismatch for a contribution to another step.
Hello hello_of(const std::vector<std::byte>& bytes, std::size_t rank) {
  Hello hello;
  hello.mark = 0;
  if (bytes.size() >= sizeof hello) std::memcpy(&hello, bytes.data(), sizeof hello);
  if (hello.mark == Hello::magic) return hello;
  throw Mismatch("opening channels over UCX: rank " + std::to_string(rank) +
                 " is in another collective step, or asks for another transport; do all ranks make the same steps?");
}

}  // namespace

class UcxTransport final : public Transport {
 public:
  // Collective. Throws the same error on every rank.
  explicit UcxTransport(GroupState& group) {
    Hello own;
    std::vector<std::byte> rest;
    std::exception_ptr failure;
    try {
      const ProcessContext& context = process_context();
      own.major = context.library.major;
      own.minor = context.library.minor;
      context.library.version.copy(own.version.data(), own.version.size() - 1);
      own.puts = wants_puts(context) ? 1 : 0;
      connections_ = std::make_shared<Connections>(context, group.rank, group.size);
      rest = connections_->own_address();
      own.usable = 1;
    } catch (const std::exception& error) {
      const std::string_view words(error.what());
      rest.assign(reinterpret_cast<const std::byte*>(words.data()),
                  reinterpret_cast<const std::byte*>(words.data()) + words.size());
      failure = std::current_exception();
    }
    const Gathered all = group.allgather(packed(own, rest));
    if (failure) std::rethrow_exception(failure);
    throw_refusal(all, "opening channels");
    puts_ = true;
    Hello first;
    for (std::size_t r = 0; r < all.size(); ++r) {
      const Hello hello = hello_of(all[r], r);
      const std::span<const std::byte> theirs = std::span(all[r]).subspan(sizeof hello);
      if (hello.usable == 0) {
        throw Error("opening channels over UCX failed on rank " + std::to_string(r) + ": " +
                    std::string(reinterpret_cast<const char*>(theirs.data()), theirs.size()));
      }
      if (r == 0) first = hello;
      if (hello.major != first.major || hello.minor != first.minor) {
        throw Mismatch("rank 0 has UCX " + std::string(first.version.data()) + ", but rank " + std::to_string(r) +
                       " has UCX " + hello.version.data() +
                       "; versions may speak differently: let all ranks load the same one (ONEHOP_UCX)");
      }
      connections_->set_address(static_cast<int>(r), theirs);
      puts_ = puts_ && hello.puts != 0;
    }
  }

  std::string_view name() const override { return "ucx"; }
  std::string unreachable(int) const override { return ""; }
  std::string describe(int rank) const override {
    const std::string networks = connections_->networks_to(rank);
    return std::string(puts_ ? "puts" : "active messages") + (networks.empty() ? "" : " over " + networks);
  }

  Opened open(const std::shared_ptr<GroupState>& group, std::span<const ChannelShape> shapes) override {
    std::vector<std::shared_ptr<SendEnd>> senders;
    std::vector<std::shared_ptr<ReceiveEnd>> receivers;
    std::exception_ptr failure;
    try {
      for (const ChannelShape& shape : shapes) {
        if (shape.from == group->rank) senders.push_back(std::make_shared<SendEnd>(group, shape, connections_, puts_));
        if (shape.to == group->rank)
          receivers.push_back(std::make_shared<ReceiveEnd>(group, shape, connections_, puts_));
      }
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
    agree(*group, "opening channels over UCX", failure);
    for (const auto& end : receivers) end->announce();
    for (const auto& end : senders) connections_->greet(end->shape().to);
    for (const auto& end : receivers) connections_->greet(end->shape().from);
    for (const auto& end : senders) await(*group, *end, end->shape().to, [&] { return end->can_send(); });
    for (const auto& end : receivers) await(*group, *end, end->shape().from, [] { return true; });
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
  static const std::atomic<std::uint32_t>& always_up() {
    static constinit std::atomic<std::uint32_t> word{1};
    return word;
  }

  // Waits until the connection is complete, so that messages leave without further calls, and until `more()`.
  template <class More>
  void await(GroupState& group, Endpoint& end, int peer, const More& more) {
    Waiting waiting(group, true);
    const auto ready = [&] { return connections_->is_complete(peer) && more(); };
    while (!ready()) {
      end.progress();
      waiting.idle(ready, [&] { return WaitingFor{peer, end.name()}; });
    }
  }

  std::shared_ptr<Connections> connections_;
  bool puts_ = false;
};

}  // namespace ucx

std::unique_ptr<Transport> make_ucx_transport(GroupState& group) { return std::make_unique<ucx::UcxTransport>(group); }

}  // namespace onehop::detail
