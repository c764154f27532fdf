#include "machine/simulate/network.h"

#include <algorithm>
#include <string>

#include "onehop/error.h"

namespace onehop::detail {
namespace {

constexpr int owner_bits = 36;
constexpr int sub_bits = 20;
constexpr int kind_bits = 4;

std::int64_t at(const std::vector<std::int64_t>& values, std::size_t i) { return values[i]; }

}  // namespace

std::uint64_t Link::key() const {
  std::uint64_t key = static_cast<std::uint64_t>(level);
  key = (key << kind_bits) | static_cast<std::uint64_t>(kind);
  key = (key << sub_bits) | static_cast<std::uint64_t>(sub);
  return (key << owner_bits) | static_cast<std::uint64_t>(owner);
}

Link Link::from_key(std::uint64_t key) {
  const auto take = [&](int bits) {
    const std::uint64_t value = key & ((std::uint64_t{1} << bits) - 1);
    key >>= bits;
    return static_cast<std::int64_t>(value);
  };
  Link link;
  link.owner = take(owner_bits);
  link.sub = take(sub_bits);
  link.kind = static_cast<LinkKind>(take(kind_bits));
  link.level = static_cast<int>(key);
  return link;
}

// Where a message leaves a level's member and where it arrives.
struct Network::Ends {
  int level = 0;
  std::int64_t from = 0;  // members of the level, numbered in the whole machine
  std::int64_t to = 0;
  std::int64_t unit = 0;       // the unit that holds both
  std::int64_t members = 1;    // of the unit
  std::int64_t from_slot = 0;  // spreads messages over the links of a member
  std::int64_t to_slot = 0;
};

Network::Network(const Machine& machine) : machine_(machine) {
  std::int64_t size = 1;
  for (const Level& level : machine_.levels) {
    below_.push_back(size);
    size *= level.members();
  }
  below_.push_back(size);
}

void Network::find(std::int64_t from, std::int64_t to, std::int64_t order, int rail, Route& route) const {
  route.links.clear();
  int number = 0;
  while (from / below_[static_cast<std::size_t>(number) + 1] != to / below_[static_cast<std::size_t>(number) + 1]) {
    ++number;
  }
  const Level& level = machine_.levels[static_cast<std::size_t>(number)];
  const std::int64_t rails = level.interfaces > 0 ? level.interfaces : level.links;
  if (rail >= rails) {
    throw BadInput("simulate: expected rails from 0 to " + std::to_string(rails - 1) + " on level " + level.name +
                   " of " + machine_.name + ", found rail " + std::to_string(rail));
  }
  const std::int64_t size = member_size(number);
  Ends ends;
  ends.level = number;
  ends.from = from / size;
  ends.to = to / size;
  ends.members = level.members();
  ends.unit = ends.from / ends.members;
  ends.from_slot = rail >= 0 ? rail : from % size + size * order;
  ends.to_slot = rail >= 0 ? rail : to % size + size * order;
  route.level = number;
  route.overhead = level.overhead.value;
  route.gap = level.gap.value;
  route.bandwidth = level.bandwidth.value;
  route.latency = level.latency.value;
  if (level.interfaces > 0) {
    route.links.push_back({number, LinkKind::interface, ends.from, ends.from_slot % level.interfaces});
    route.bandwidth = std::min(route.bandwidth, level.injection.value / static_cast<double>(level.interfaces));
  } else if (level.injection.value > 0) {
    route.links.push_back({number, LinkKind::injection, ends.from, 0});
  }
  switch (level.routing) {
    case Routing::mesh:
      route.links.push_back({number, LinkKind::pair, ends.from, ends.to % ends.members});
      return;
    case Routing::torus:
      add_torus(level, ends, route);
      return;
    case Routing::all_to_all:
      add_member_links(level, ends, route);
      return;
    case Routing::fat_tree:
      add_member_links(level, ends, route);
      add_tree(level, ends, route);
      return;
    case Routing::dragonfly:
      add_member_links(level, ends, route);
      add_dragonfly(level, ends, route);
  }
}

void Network::add_member_links(const Level& level, const Ends& ends, Route& route) const {
  route.links.push_back({ends.level, LinkKind::up, ends.from, ends.from_slot % level.links});
  route.links.push_back({ends.level, LinkKind::down, ends.to, ends.to_slot % level.links});
}

void Network::add_tree(const Level& level, const Ends& ends, Route& route) const {
  std::int64_t from = ends.from;
  std::int64_t to = ends.to;
  for (std::size_t tier = 0; tier + 1 < level.extents.size(); ++tier) {
    from /= at(level.extents, tier);
    to /= at(level.extents, tier);
    if (from == to) return;
    route.links.push_back({ends.level, LinkKind::tier_up, from, static_cast<std::int64_t>(tier)});
    route.links.push_back({ends.level, LinkKind::tier_down, to, static_cast<std::int64_t>(tier)});
    route.latency += 2 * level.hop_latency.value;
  }
}

void Network::add_torus(const Level& level, const Ends& ends, Route& route) const {
  std::int64_t here = ends.from;
  const std::int64_t target = ends.to;
  std::int64_t stride = 1;
  std::int64_t hops = 0;
  for (std::size_t dim = 0; dim < level.extents.size(); ++dim) {
    const std::int64_t extent = at(level.extents, dim);
    std::int64_t place = here / stride % extent;
    const std::int64_t upwards = (target / stride % extent - place + extent) % extent;
    const bool down = 2 * upwards > extent;
    const std::int64_t steps = down ? extent - upwards : upwards;
    for (std::int64_t step = 0; step < steps; ++step) {
      route.links.push_back({ends.level, LinkKind::torus, here, static_cast<std::int64_t>(2 * dim) + (down ? 1 : 0)});
      const std::int64_t next = down ? (place + extent - 1) % extent : (place + 1) % extent;
      here += (next - place) * stride;
      place = next;
    }
    hops += steps;
    stride *= extent;
  }
  route.latency += static_cast<double>(hops - 1) * level.hop_latency.value;
}

void Network::add_dragonfly(const Level& level, const Ends& ends, Route& route) const {
  const std::int64_t per_router = at(level.extents, 0);
  const std::int64_t routers = at(level.extents, 1);
  const std::int64_t groups = at(level.extents, 2);
  const std::int64_t from_router = ends.from / per_router;
  const std::int64_t to_router = ends.to / per_router;
  if (from_router == to_router) return;
  const std::int64_t from_group = from_router / routers;
  const std::int64_t to_group = to_router / routers;
  const auto local = [&](std::int64_t router, std::int64_t target) {
    if (router % routers == target) return;
    route.links.push_back({ends.level, LinkKind::local, router, target});
    route.latency += level.hop_latency.value;
  };
  if (from_group == to_group) {
    local(from_router, to_router % routers);
    return;
  }
  // The links between two groups end at many routers. Where they do differs from machine to machine; here the distance
  // between the groups decides which router, counted from the message's own, holds the link.
  const std::int64_t exit = (from_router % routers + (to_group - from_group + groups) % groups) % routers;
  const std::int64_t entry = (to_router % routers + (from_group - to_group + groups) % groups) % routers;
  local(from_router, exit);
  route.links.push_back({ends.level, LinkKind::global, from_group, to_group % groups});
  route.latency += level.hop_latency.value;
  local(to_group * routers + entry, to_router % routers);
}

double Network::flow_seconds(int level, double bytes) const {
  const Level& one = machine_.levels[static_cast<std::size_t>(level)];
  return std::max(0.0, one.one_way.seconds(bytes) - one.latency.value - 2 * one.overhead.value);
}

double Network::collective_seconds(int level, double bytes) const {
  const TimeTable& table = machine_.levels[static_cast<std::size_t>(level)].in_collective;
  return table.empty() ? 0 : table.seconds(bytes);
}

double Network::work_seconds(int level, double bytes) const {
  const Level& one = machine_.levels[static_cast<std::size_t>(level)];
  return one.both_ways.empty() ? 0 : std::max(0.0, one.both_ways.seconds(bytes) / 2 - one.overhead.value);
}

double Network::bandwidth(const Link& link) const {
  const Level& level = machine_.levels[static_cast<std::size_t>(link.level)];
  const double one = level.bandwidth.value;
  const auto links = static_cast<double>(level.links);
  switch (link.kind) {
    case LinkKind::up:
    case LinkKind::down:
      return one;
    case LinkKind::injection:
      return level.injection.value;
    case LinkKind::interface:
      return level.injection.value / static_cast<double>(level.interfaces);
    case LinkKind::pair:
    case LinkKind::torus:
      return one * links;
    case LinkKind::local:
      return level.local_bandwidth.value;
    case LinkKind::global:
      return level.group_bandwidth.value;
    case LinkKind::tier_up:
    case LinkKind::tier_down:
      break;
  }
  double capacity = one * links;
  for (std::size_t tier = 0; tier <= static_cast<std::size_t>(link.sub); ++tier) {
    capacity *= static_cast<double>(at(level.extents, tier)) * level.taper[tier];
  }
  return capacity;
}

std::string Network::name(const Link& link) const {
  const Level& level = machine_.levels[static_cast<std::size_t>(link.level)];
  const std::string owner = std::to_string(link.owner);
  const std::string sub = std::to_string(link.sub);
  const std::string member =
      link.level == 0 ? "processor" : machine_.levels[static_cast<std::size_t>(link.level) - 1].name;
  switch (link.kind) {
    case LinkKind::up:
      return member + " " + owner + ", link " + sub + " out";
    case LinkKind::down:
      return member + " " + owner + ", link " + sub + " in";
    case LinkKind::injection:
      return member + " " + owner + ", all it sends";
    case LinkKind::interface:
      return member + " " + owner + ", interface " + sub;
    case LinkKind::pair:
      return member + " " + owner + " to member " + sub;
    case LinkKind::tier_up:
      return level.name + ", switch " + owner + " of tier " + sub + " up";
    case LinkKind::tier_down:
      return level.name + ", switch " + owner + " of tier " + sub + " down";
    case LinkKind::torus:
      return member + " " + owner + ", dimension " + std::to_string(link.sub / 2) +
             (link.sub % 2 == 0 ? " up" : " down");
    case LinkKind::local:
      return level.name + ", router " + owner + " to router " + sub + " of its group";
    case LinkKind::global:
      return level.name + ", group " + owner + " to group " + sub;
  }
  return "?";
}

}  // namespace onehop::detail
