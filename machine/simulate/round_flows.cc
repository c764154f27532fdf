#include "machine/simulate/round_flows.h"

#include <algorithm>
#include <map>
#include <utility>

#include "onehop/error.h"

namespace onehop::detail {
namespace {

// A rank that sends more messages in a round starts them in this many parts, to bound the number of events.
constexpr std::int64_t max_batches = 16;
constexpr std::size_t max_mixed_flows = 65536;  // of one class of senders
constexpr std::size_t max_mixed_bits = 131072;  // of all classes, in an exchange of bits
constexpr std::int64_t max_flows = std::int64_t{1} << 24;

}  // namespace

std::uint32_t LinkTable::number(const Link& link, std::int64_t alike) {
  if (2 * (keys_.size() + 1) > slots_.size()) grow();
  const std::uint64_t key = link.key();
  std::size_t slot = (key * 0x9E3779B97F4A7C15ULL) >> 20 & (slots_.size() - 1);
  while (slots_[slot].used && slots_[slot].key != key) slot = (slot + 1) & (slots_.size() - 1);
  if (!slots_[slot].used) {
    slots_[slot] = {key, static_cast<std::uint32_t>(keys_.size()), true};
    keys_.push_back(key);
    alike_.push_back(alike);
  }
  return slots_[slot].number;
}

void LinkTable::grow() {
  slots_.assign(std::max<std::size_t>(1024, slots_.size() * 4), {});
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    std::size_t slot = (keys_[i] * 0x9E3779B97F4A7C15ULL) >> 20 & (slots_.size() - 1);
    while (slots_[slot].used) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = {keys_[i], static_cast<std::uint32_t>(i), true};
  }
}

Classes::Classes(const Network& network, const Symmetry& symmetry, std::vector<std::int64_t> places, int ranks)
    : network_(network), symmetry_(symmetry), places_(std::move(places)), ranks_(ranks) {
  if (!symmetry_.any()) {
    representatives_.resize(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) representatives_[static_cast<std::size_t>(rank)] = rank;
    return;
  }
  // Places that are their own canonical place stand for the others; ranks have their own numbers as places here, or any
  // order, as in traffic between all.
  class_of_place_.assign(static_cast<std::size_t>(ranks), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    if (canonical_place(rank) != rank) continue;
    class_of_place_[static_cast<std::size_t>(rank)] = static_cast<std::uint32_t>(representatives_.size());
    representatives_.push_back(rank);
  }
  places_.clear();
  population_ = static_cast<double>(ranks) / static_cast<double>(representatives_.size());
}

std::int64_t Classes::place(std::int64_t rank) const {
  return places_.empty() ? rank : places_[static_cast<std::size_t>(rank)];
}

std::int64_t Classes::canonical_place(std::int64_t place) const { return canonical_owner(place, 0, 0).first; }

std::uint32_t Classes::class_of(std::int64_t rank) const {
  if (!symmetry_.any()) return static_cast<std::uint32_t>(rank);
  return class_of_place_[static_cast<std::size_t>(canonical_place(rank))];
}

std::pair<std::int64_t, std::int64_t> Classes::canonical_owner(std::int64_t owner, int level,
                                                               std::size_t first_dim) const {
  std::int64_t canonical = 0;
  std::int64_t stride = 1;
  std::int64_t alike = 1;
  const auto& levels = network_.machine().levels;
  for (auto l = static_cast<std::size_t>(level); l < levels.size(); ++l) {
    for (std::size_t d = first_dim; d < levels[l].extents.size(); ++d) {
      const std::int64_t extent = levels[l].extents[d];
      const std::int64_t period = symmetry_.periods[l][d];
      std::int64_t place = owner % extent % period;
      if (symmetry_.mirrored[l][d]) {
        place = std::min(place, period - 1 - place);
        alike *= 2;
      }
      canonical += place * stride;
      owner /= extent;
      stride *= extent;
      alike *= extent / period;
    }
    first_dim = 0;
  }
  return {canonical, alike};
}

// Whether the canonical place of the owner of a torus's link is a mirror image in the link's dimension.
bool Classes::is_mirrored(const Link& link) const {
  const auto level = static_cast<std::size_t>(link.level);
  const auto dim = static_cast<std::size_t>(link.sub / 2);
  if (!symmetry_.mirrored[level][dim]) return false;
  std::int64_t place = link.owner;
  for (std::size_t d = 0; d < dim; ++d) place /= network_.machine().levels[level].extents[d];
  const std::int64_t period = symmetry_.periods[level][dim];
  return 2 * (place % network_.machine().levels[level].extents[dim] % period) >= period;
}

std::pair<Link, std::int64_t> Classes::canonical(const Link& link) const {
  const Level& level = network_.machine().levels[static_cast<std::size_t>(link.level)];
  Link found = link;
  std::size_t first_dim = 0;
  std::int64_t more = 1;  // links of one owner that are alike
  std::int64_t fan = 0;   // targets of the owner; their distance counts
  switch (link.kind) {
    case LinkKind::up:
    case LinkKind::down:
    case LinkKind::interface:
      // The ranks of a member take its links in turn.
      if (network_.member_size(link.level) > 1 || symmetry_.unordered) {
        more = link.kind == LinkKind::interface ? level.interfaces : level.links;
        found.sub = 0;
      }
      break;
    case LinkKind::pair:
      fan = level.members();
      break;
    case LinkKind::tier_up:
    case LinkKind::tier_down:
      first_dim = static_cast<std::size_t>(link.sub) + 1;
      break;
    case LinkKind::local:
      first_dim = 1;
      fan = level.extents[1];
      break;
    case LinkKind::global:
      first_dim = 2;
      fan = level.extents[2];
      break;
    case LinkKind::torus:
      if (is_mirrored(link)) found.sub ^= 1;  // upwards becomes downwards
      break;
    case LinkKind::injection:
      break;
  }
  const auto [owner, alike] = canonical_owner(link.owner, link.level, first_dim);
  if (fan > 0) {
    const std::int64_t own = link.owner % fan;
    const std::int64_t canonical_own = owner % fan;
    const bool flip = symmetry_.exclusive_or && link.kind == LinkKind::pair;
    found.sub = flip ? (link.sub ^ own ^ canonical_own) : (link.sub - own + canonical_own + fan) % fan;
  }
  found.owner = owner;
  return {found, alike * more};
}

// Collects the flows of a round.
class Classes::Builder {
 public:
  Builder(const Classes& classes, LinkTable& links, RoundFlows& out, bool collective)
      : classes_(classes), links_(links), out_(out), collective_(collective) {
    out_.out.resize(classes.size());
    out_.incoming.assign(classes.size(), 0);
  }

  // Finds the route of a message. `order` counts the messages of its sender.
  void find(std::int64_t from, std::int64_t to, std::int64_t order, int rail) {
    classes_.network_.find(classes_.place(from), classes_.place(to), order, rail, route_);
    uses_.clear();
    for (const Link& link : route_.links) {
      if (!classes_.symmetry_.any()) {
        uses_.push_back({links_.number(link, 1), 1});
        continue;
      }
      const auto [one, alike] = classes_.canonical(link);
      add_use({links_.number(one, alike), classes_.population() / static_cast<double>(alike)});
    }
  }

  [[nodiscard]] const Route& route() const { return route_; }
  [[nodiscard]] const std::vector<Use>& uses() const { return uses_; }

  void add(std::uint32_t from, std::uint32_t to, double bytes, int batch, double count, const Route& route,
           const std::vector<Use>& uses, const Pieces& pieces = {}) {
    const auto number = static_cast<std::uint32_t>(out_.flows.size());
    Flow flow{from, to, bytes, count, batch, route.latency, route.overhead, route.gap, route.level, pieces, 0};
    const double known = collective_ ? classes_.network_.collective_seconds(route.level, bytes) : 0;
    if (known > 0) {
      // Half of what the bytes leave of the time passes in the processors at both ends.
      const double rest = std::max(0.0, known - bytes / route.bandwidth);
      flow.collective = true;
      flow.overhead = rest / 4;
      flow.latency +=
          rest / 2 - classes_.network_.machine().levels[static_cast<std::size_t>(route.level)].latency.value;
      flow.work = known / 2 - flow.overhead;
    } else {
      flow.work = classes_.network_.work_seconds(route.level, bytes);
    }
    out_.flows.push_back(flow);
    out_.table.first.push_back(out_.table.uses.size());
    for (const Use& use : uses) out_.table.uses.push_back({use.link, use.weight * count});
    out_.table.last.push_back(out_.table.uses.size());
    out_.table.limit.push_back(route.bandwidth);
    out_.out[from].push_back(number);
    ++out_.incoming[to];
    const double all = count * classes_.population();
    out_.messages += all;
    out_.bytes += all * bytes;
  }

 private:
  void add_use(const Use& use) {
    for (Use& one : uses_) {
      if (one.link != use.link) continue;
      one.weight += use.weight;
      return;
    }
    uses_.push_back(use);
  }

  const Classes& classes_;
  LinkTable& links_;
  RoundFlows& out_;
  bool collective_;
  Route route_;
  std::vector<Use> uses_;
};

// Messages of one class of ranks, of which those with equal behaviour are joined.
class Classes::Kinds {
 public:
  struct Kind {
    std::uint32_t to = 0;
    double bytes = 0;
    Route route;
    std::vector<Use> uses;
    Pieces pieces;
    double count = 0;
  };

  void add(std::uint32_t to, double bytes, const Route& route, const std::vector<Use>& uses,
           const Pieces& pieces = {}) {
    Key key{to, bytes, route.latency, route.level, pieces, {}};
    for (const Use& use : uses) key.uses.emplace_back(use.link, use.weight);
    std::ranges::sort(key.uses);
    const auto [found, is_new] = index_.try_emplace(std::move(key), kinds_.size());
    if (is_new) {
      kinds_.push_back({to, bytes, route, uses, pieces, 0});
      kinds_.back().route.links.clear();
    }
    kinds_[found->second].count += 1;
  }
  [[nodiscard]] const std::vector<Kind>& kinds() const { return kinds_; }

 private:
  struct Key {
    std::uint32_t to;
    double bytes;
    double latency;
    int level;
    Pieces pieces;
    std::vector<std::pair<std::uint32_t, double>> uses;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  std::map<Key, std::size_t> index_;
  std::vector<Kind> kinds_;
};

namespace {

std::int64_t batches_of(std::int64_t messages) { return std::min(messages, max_batches); }

// The number whose bits at the places `bits` are those of `value`, lowest first.
std::int64_t deposit(std::int64_t value, const std::vector<int>& bits) {
  std::int64_t result = 0;
  for (std::size_t i = 0; i < bits.size(); ++i) result |= (value >> i & 1) << bits[i];
  return result;
}

}  // namespace

// Adds the messages of one class in parts of equal composition, as at most `most` flows or one of each kind.
void Classes::add_mixed(std::uint32_t from, const Kinds& kinds, std::int64_t messages, std::size_t most,
                        Builder& builder) const {
  const auto parts = static_cast<std::int64_t>(most / std::max<std::size_t>(1, kinds.kinds().size()));
  const std::int64_t batches = std::clamp<std::int64_t>(parts, 1, batches_of(messages));
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    for (const Kinds::Kind& kind : kinds.kinds()) {
      builder.add(from, kind.to, kind.bytes, static_cast<int>(batch), kind.count / static_cast<double>(batches),
                  kind.route, kind.uses, kind.pieces);
    }
  }
}

void Classes::add_everyone(const TrafficRound& round, Builder& builder) const {
  const auto bytes = static_cast<double>(round.bytes);
  for (std::size_t i = 0; i < size(); ++i) {
    Kinds kinds;
    for (std::int64_t order = 0; order + 1 < ranks_; ++order) {
      const std::int64_t to = (representatives_[i] + order + 1) % ranks_;
      builder.find(representatives_[i], to, order, -1);
      kinds.add(class_of(to), bytes, builder.route(), builder.uses());
    }
    add_mixed(static_cast<std::uint32_t>(i), kinds, ranks_ - 1, max_mixed_flows, builder);
  }
}

void Classes::add_bits(const TrafficRound& round, Builder& builder) const {
  const std::int64_t messages = (std::int64_t{1} << round.bits.size()) - 1;
  if (messages == 0) return;
  if (std::ssize(representatives_) > max_flows / messages) {
    throw BadInput("simulate: expected an exchange of bits with at most " + std::to_string(max_flows) +
                   " different messages by the symmetry of the machine, found " + std::to_string(messages) +
                   " from each of " + std::to_string(size()) + " different ranks; take fewer ranks");
  }
  if (round.mixed && messages > max_batches) {
    add_mixed_bits(round, builder);
    return;
  }
  const auto bytes = static_cast<double>(round.bytes);
  const std::int64_t batches = batches_of(messages);
  for (std::size_t i = 0; i < size(); ++i) {
    for (std::int64_t order = 0; order < messages; ++order) {
      const std::int64_t to = representatives_[i] ^ deposit(order + 1, round.bits);
      builder.find(representatives_[i], to, order, -1);
      builder.add(static_cast<std::uint32_t>(i), class_of(to), bytes, static_cast<int>(order * batches / messages), 1,
                  builder.route(), builder.uses());
    }
  }
}

void Classes::add_mixed_bits(const TrafficRound& round, Builder& builder) const {
  const auto bytes = static_cast<double>(round.bytes);
  const std::int64_t messages = (std::int64_t{1} << round.bits.size()) - 1;
  std::vector<Kinds> kinds(size());
  for (std::size_t i = 0; i < size(); ++i) {
    for (std::int64_t order = 0; order < messages; ++order) {
      const std::int64_t to = representatives_[i] ^ deposit(order + 1, round.bits);
      builder.find(representatives_[i], to, order, -1);
      kinds[i].add(class_of(to), bytes, builder.route(), builder.uses());
    }
  }
  for (std::size_t i = 0; i < size(); ++i) {
    const std::size_t most = std::min(max_mixed_flows, max_mixed_bits / size());
    add_mixed(static_cast<std::uint32_t>(i), kinds[i], messages, most, builder);
  }
}

void Classes::add_list(const TrafficRound& round, Builder& builder) const {
  std::vector<std::int64_t> messages(static_cast<std::size_t>(ranks_), 0);
  for (const Message& message : round.messages) ++messages[static_cast<std::size_t>(message.from)];
  const bool packing = network_.machine().packing_seconds(1, 1) > 0;
  std::vector<std::int64_t> sent(messages.size(), 0);
  std::vector<Kinds> mixed(round.mixed ? messages.size() : 0);
  for (const Message& message : round.messages) {
    const auto from = static_cast<std::size_t>(message.from);
    const auto to = static_cast<std::uint32_t>(message.to);
    const std::int64_t order = sent[from]++;
    const auto bytes = static_cast<double>(message.bytes);
    Pieces pieces;  // where they cost nothing, messages that differ in them are alike
    if (packing) pieces = {static_cast<double>(message.pieces_sent), static_cast<double>(message.pieces_received)};
    builder.find(message.from, message.to, order, message.rail);
    if (round.mixed && messages[from] > max_batches) {
      mixed[from].add(to, bytes, builder.route(), builder.uses(), pieces);
      continue;
    }
    builder.add(static_cast<std::uint32_t>(from), to, bytes,
                static_cast<int>(order * batches_of(messages[from]) / messages[from]), 1, builder.route(),
                builder.uses(), pieces);
  }
  for (std::size_t from = 0; from < mixed.size(); ++from) {
    add_mixed(static_cast<std::uint32_t>(from), mixed[from], messages[from], max_mixed_flows, builder);
  }
}

RoundFlows Classes::flows_of(const TrafficRound& round, LinkTable& links) const {
  RoundFlows result;
  Builder builder(*this, links, result, round.collective);
  const auto per_class = [&](const std::vector<std::int64_t>& values) {
    std::vector<double> found(size(), 0);
    for (std::size_t i = 0; i < size() && !values.empty(); ++i) {
      found[i] = static_cast<double>(values[values.size() == 1 ? 0 : static_cast<std::size_t>(representatives_[i])]);
    }
    return found;
  };
  result.local_bytes = per_class(round.local_bytes);
  result.local_pieces = per_class(round.local_pieces);
  switch (round.kind) {
    case TrafficRound::Kind::everyone:
      add_everyone(round, builder);
      break;
    case TrafficRound::Kind::bits:
      add_bits(round, builder);
      break;
    case TrafficRound::Kind::list:
      add_list(round, builder);
  }
  return result;
}

}  // namespace onehop::detail
