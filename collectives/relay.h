// How operations begin in a group of several hosts with several ranks each: one message from host to host. Each rank
// tells the first rank of its host, which speaks for it, what it runs. That rank tells those that speak for the other
// hosts, and tells its own host what it has learnt. If all run the same operation, and it is a short all-reduce, the
// contributions travel along and the result comes back.
//
// Every rank learns of a mismatch by itself, as if it had seen the headers of all: if two of them differ, it gets one
// that differs from its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collectives/header.h"
#include "collectives/operation.h"
#include "onehop/channel.h"
#include "onehop/collectives/collectives.h"
#include "onehop/group.h"

namespace onehop::collectives::detail {

// A rank's knowledge of the ranks that it speaks for, itself included.
struct Summary {
  Header header;                  // its own
  Header other;                   // one of theirs that differs from it
  std::int32_t rank = -1;         // its own
  std::int32_t other_rank = -1;   // -1: none differs
  std::uint64_t lengths_sum = 0;  // of Operation::lengths_sum

  [[nodiscard]] bool all_equal() const noexcept { return other_rank < 0; }
};
static_assert(sizeof(Summary) == 64);

// The longest contribution that travels along, and all of a host together where each travels by itself. Both get
// shorter where a rank would need slots for many ranks of its host, or for many hosts.
struct RelayLimits {
  std::int64_t contribution = 0;
  std::int64_t of_host = 0;
};
[[nodiscard]] RelayLimits relay_limits(std::int64_t hosts, std::int64_t ranks_per_host);

class Relay {
 public:
  // Collective. `hosts`: the ranks of each host.
  Relay(const Group& group, const std::vector<std::vector<int>>& hosts, const CollectivesOptions& options);

  // Whether contributions of so many bytes can travel along: those of a host combined, or each by itself.
  [[nodiscard]] bool takes(std::int64_t bytes) const noexcept { return bytes <= longest_; }
  [[nodiscard]] bool takes_by_rank(std::int64_t bytes) const noexcept;

  // Begins `operation`. `source` is this rank's contribution if Operation::is_relayed() says so; it must stay as it is
  // until finish(). Does not wait.
  void start(const Operation& operation, const std::byte* source);
  // Returns what this rank has learnt about all ranks. If they run the same and it is relayed, stores the result; it
  // may be the source.
  [[nodiscard]] Summary finish(std::byte* result);
  // In place of start(): this rank cannot run the operation.
  void refuse(const Operation& operation);

  // Of contributions and results, by the last operation.
  [[nodiscard]] std::int64_t bytes_sent() const noexcept { return sent_; }
  [[nodiscard]] std::int64_t bytes_received() const noexcept { return received_; }
  [[nodiscard]] std::int64_t staging_bytes() const noexcept { return staging_bytes_; }

 private:
  struct Host {
    std::vector<int> ranks;
    Sender out;
    Receiver in;
  };
  [[nodiscard]] std::int64_t bytes() const noexcept;
  // On the rank that speaks: tells the other hosts, once all ranks of this one have told it.
  [[nodiscard]] bool may_speak();
  void speak();
  void combine_host(std::byte* to);
  void combine_hosts(std::byte* result);
  void tell_host(const Summary& all, const std::byte* result);
  void add(const Summary& theirs);

  int rank_;
  bool speaks_ = false;
  std::size_t here_ = 0;              // number of this host
  std::int64_t most_ranks_ = 1;       // of a host
  std::int64_t longest_ = 0;          // contribution
  std::int64_t longest_of_host_ = 0;  // contributions of a host together
  std::vector<Host> hosts_;           // ends of channels in those that this rank speaks to
  std::vector<Sender> down_;          // on the rank that speaks: to and from the others of its host
  std::vector<Receiver> up_;
  std::optional<Sender> to_speaker_;
  std::optional<Receiver> from_speaker_;
  const Operation* operation_ = nullptr;
  const std::byte* source_ = nullptr;
  Summary summary_;
  bool spoken_ = false;
  std::vector<std::byte> combined_;             // the contribution of this host
  std::vector<const std::byte*> sources_;       // the contributions, by rank
  std::vector<const std::byte*> host_sources_;  // those of this host, or of each host
  std::int64_t sent_ = 0;
  std::int64_t received_ = 0;
  std::int64_t staging_bytes_ = 0;
};

}  // namespace onehop::collectives::detail
