// The messages of one round as flows between classes of ranks. In a list every rank is a class of its own. Where the
// traffic and the machine are symmetric, one rank stands for many, and one link for all that carry the same load.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "machine/simulate/max_min.h"
#include "machine/simulate/network.h"
#include "onehop/machine/simulate.h"

namespace onehop::detail {

// Memory of a message of a list: itself, its flow and its route.
inline constexpr double listed_message_bytes = 450;

// Contiguous pieces of a message that its ends gather and scatter.
struct Pieces {
  double sent = 0;
  double received = 0;
  friend auto operator<=>(const Pieces&, const Pieces&) = default;
};

// Messages that behave alike: each rank of class `from` sends `count` of them to ranks of class `to`.
struct Flow {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  double bytes = 0;
  double count = 1;
  int batch = 0;  // flows of one sender and batch start together
  double latency = 0;
  double overhead = 0;
  double gap = 0;
  int level = 0;
  Pieces pieces;            // of each message
  double work = 0;          // seconds, beside the overhead, for which each end's processor works on a message
  bool collective = false;  // overhead and latency are those of a message inside a collective operation
};

// The links that were used so far, over all rounds, with dense numbers.
class LinkTable {
 public:
  explicit LinkTable(const Network& network) : network_(network) {}

  // `alike` links share one number.
  [[nodiscard]] std::uint32_t number(const Link& link, std::int64_t alike);
  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  [[nodiscard]] Link link(std::size_t number) const { return Link::from_key(keys_[number]); }
  [[nodiscard]] std::int64_t alike(std::size_t number) const { return alike_[number]; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t number = 0;
    bool used = false;
  };
  void grow();

  const Network& network_;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> keys_;
  std::vector<std::int64_t> alike_;
};

// How the ranks of a run are grouped into classes, the same for all rounds. symmetry.cc derives it.
struct Symmetry {
  // The period of the symmetry in every dimension of every level; empty: every rank is a class of its own.
  std::vector<std::vector<std::int64_t>> periods;
  // Whether places may also be mirrored within each period: only in dimensions of a torus.
  std::vector<std::vector<bool>> mirrored;
  bool exclusive_or = false;  // partners differ by an exclusive or of their places, not by a difference
  bool unordered = false;     // ranks that are alike send their messages in different orders
  [[nodiscard]] bool any() const { return !periods.empty(); }
};

// Returns the symmetry that all rounds of `traffic` have on the machine, or none.
[[nodiscard]] Symmetry symmetry_of(const Traffic& traffic, const Machine& machine, bool own_places);

struct RoundFlows {
  std::vector<Flow> flows;
  FlowTable table;                              // one entry per flow
  std::vector<std::vector<std::uint32_t>> out;  // flows of each class of senders, in order
  std::vector<std::uint32_t> incoming;          // number of flows to each class
  std::vector<double> local_bytes;              // per class
  std::vector<double> local_pieces;             // per class
  double messages = 0;
  double bytes = 0;
};

class Classes {
 public:
  Classes(const Network& network, const Symmetry& symmetry, std::vector<std::int64_t> places, int ranks);

  [[nodiscard]] std::size_t size() const { return representatives_.size(); }
  [[nodiscard]] int representative(std::size_t one) const { return representatives_[one]; }
  [[nodiscard]] double population() const { return population_; }

  [[nodiscard]] RoundFlows flows_of(const TrafficRound& round, LinkTable& links) const;

 private:
  class Builder;
  class Kinds;
  void add_mixed(std::uint32_t from, const Kinds& kinds, std::int64_t messages, std::size_t most,
                 Builder& builder) const;
  void add_everyone(const TrafficRound& round, Builder& builder) const;
  void add_bits(const TrafficRound& round, Builder& builder) const;
  void add_mixed_bits(const TrafficRound& round, Builder& builder) const;
  void add_list(const TrafficRound& round, Builder& builder) const;
  [[nodiscard]] std::int64_t place(std::int64_t rank) const;
  [[nodiscard]] std::uint32_t class_of(std::int64_t rank) const;
  [[nodiscard]] std::int64_t canonical_place(std::int64_t place) const;
  [[nodiscard]] bool is_mirrored(const Link& link) const;
  // The representative of all links that carry the same as `link`, and their number.
  [[nodiscard]] std::pair<Link, std::int64_t> canonical(const Link& link) const;
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> canonical_owner(std::int64_t owner, int level,
                                                                      std::size_t first_dim) const;

  const Network& network_;
  const Symmetry& symmetry_;
  std::vector<std::int64_t> places_;  // of every rank; empty: its own number
  std::vector<int> representatives_;
  std::vector<std::uint32_t> class_of_place_;  // of canonical places
  double population_ = 1;                      // ranks of each class
  int ranks_ = 0;
};

}  // namespace onehop::detail
