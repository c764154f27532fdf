// The links of a machine and the routes through them. Links are numbered by keys that say what they are, so that no
// list of all links is needed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onehop/machine/machine.h"

namespace onehop::detail {

enum class LinkKind : std::uint8_t {
  up,         // from a member to its switch or router
  down,       // to a member from its switch or router
  injection,  // everything that a member sends
  interface,  // one of the interfaces of a member
  pair,       // of a mesh, to another member
  tier_up,    // from a switch of a fat tree to the tier above
  tier_down,
  torus,   // to a neighbour
  local,   // from a router to another one of its group
  global,  // from a group to another one
};

// A link, or the links above a switch together.
struct Link {
  int level = 0;
  LinkKind kind = LinkKind::up;
  std::int64_t owner = 0;  // number of the member, switch, router or group in the whole machine
  // up, down, interface: its number; pair, local, global: the target within the unit; tier_*: the tier; torus: twice
  // the dimension, plus 1 for downwards.
  std::int64_t sub = 0;
  [[nodiscard]] std::uint64_t key() const;
  [[nodiscard]] static Link from_key(std::uint64_t key);
};

struct Route {
  std::vector<Link> links;
  int level = 0;
  double latency = 0;
  double overhead = 0;
  double gap = 0;
  double bandwidth = 0;  // of one message
};

class Network {
 public:
  explicit Network(const Machine& machine);

  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] std::int64_t processors() const { return below_.back(); }
  // The processors in one member of level `level`; for the number of levels, all processors.
  [[nodiscard]] std::int64_t member_size(int level) const { return below_[static_cast<std::size_t>(level)]; }

  // The route of the message number `order` of processor `from` (see Message::rail) into `route`, which is reused.
  void find(std::int64_t from, std::int64_t to, std::int64_t order, int rail, Route& route) const;

  [[nodiscard]] double bandwidth(const Link& link) const;  // bytes per second
  // Seconds that a message which flows alone spends flowing, by the measured times of its level, which has some.
  [[nodiscard]] double flow_seconds(int level, double bytes) const;
  // Seconds of two such messages in opposite directions inside a collective operation. 0 if they are not known.
  [[nodiscard]] double collective_seconds(int level, double bytes) const;
  // Seconds, beside the overhead, for which the processor at each end works on a message: half of an exchange of two
  // such messages. 0 if the level has no such times.
  [[nodiscard]] double work_seconds(int level, double bytes) const;
  [[nodiscard]] std::string name(const Link& link) const;

 private:
  struct Ends;
  void add_member_links(const Level& level, const Ends& ends, Route& route) const;
  void add_tree(const Level& level, const Ends& ends, Route& route) const;
  void add_torus(const Level& level, const Ends& ends, Route& route) const;
  void add_dragonfly(const Level& level, const Ends& ends, Route& route) const;

  Machine machine_;
  std::vector<std::int64_t> below_;  // processors in a member of each level; then all
};

}  // namespace onehop::detail
