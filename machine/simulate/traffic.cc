#include <algorithm>
#include <cstdint>
#include <set>
#include <unordered_map>

#include "onehop/error.h"
#include "onehop/machine/simulate.h"
#include "src/base/checked.h"
#include "src/base/text.h"

namespace onehop {
namespace {

// Traffic between all ranks looks the same from each of them. As an exchange of all bits it would not on tori and
// dragonflies, whose routes depend on the exclusive or of two places.
constexpr int many_by_bits = 1024;
constexpr int many_partners = 16;  // from which on the order of messages in an exchange of bits does not count
constexpr int many = 17;           // ranks from which on the order of messages to everyone does not count

[[noreturn]] void too_many(std::int64_t messages) {
  throw BadInput("simulate: expected a round of at most " + std::to_string(max_listed_messages) +
                 " messages, unless it is symmetric and fills a box of the machine, found " +
                 (messages < 0 ? std::string("more") : std::to_string(messages)));
}

// The messages and local bytes of one round.
class RoundReader {
 public:
  explicit RoundReader(const Schedule& schedule) : schedule_(schedule) {}

  void add(const Round& round, int number) {
    by_bits_ = by_bits_ || round.permutation.has_value();
    for (std::size_t t = 0; t < round.transfers.size(); ++t) {
      const Transfer& transfer = round.transfers[t];
      check(transfer, number, t);
      if (transfer.from.slice.elements() == 0) continue;
      const std::int64_t bytes = schedule_.bytes(transfer);
      const std::int64_t out = round.permutation ? 0 : transfer.from.slice.pieces();
      const std::int64_t in = round.permutation ? 0 : transfer.to.slice.pieces();
      if (transfer.from.rank == transfer.to.rank) {
        add_local(transfer.from.rank, bytes, std::max(out, in));
        continue;
      }
      const std::int64_t key = std::int64_t{transfer.from.rank} * schedule_.ranks + transfer.to.rank;
      const auto [found, is_new] = index_.try_emplace(key, result_.messages.size());
      if (is_new) {
        if (std::ssize(result_.messages) >= max_listed_messages) too_many(-1);
        result_.messages.push_back({transfer.from.rank, transfer.to.rank, 0});
      }
      Message& message = result_.messages[found->second];
      message.bytes = detail::checked_add(message.bytes, bytes, "the bytes of a message");
      message.pieces_sent = detail::checked_add(message.pieces_sent, out, "the pieces of a message");
      message.pieces_received = detail::checked_add(message.pieces_received, in, "the pieces of a message");
    }
    result_.schedule_rounds.push_back(number);
  }

  [[nodiscard]] TrafficRound finish() {
    const int ranks = schedule_.ranks;
    for (Message& message : result_.messages) {
      if (message.pieces_sent == 1) message.pieces_sent = 0;
      if (message.pieces_received == 1) message.pieces_received = 0;
    }
    if (std::ranges::all_of(result_.local_pieces, [](std::int64_t pieces) { return pieces <= 1; })) {
      result_.local_pieces.clear();
    }
    std::ranges::stable_sort(result_.messages, {}, [&](const Message& message) {
      const int distance = by_bits_ ? message.from ^ message.to : (message.to - message.from + ranks) % ranks;
      return std::pair(message.from, distance);
    });
    const std::int64_t all = std::int64_t{ranks} * (ranks - 1);
    const bool everyone = ranks > many && std::ssize(result_.messages) == all;
    result_.mixed = everyone || (by_bits_ && std::ssize(result_.messages) > std::int64_t{ranks} * many_partners);
    return std::move(result_);
  }

 private:
  void add_local(int rank, std::int64_t bytes, std::int64_t pieces) {
    const auto add = [&](std::vector<std::int64_t>& sums, std::int64_t more, const char* what) {
      sums.resize(static_cast<std::size_t>(schedule_.ranks), 0);
      std::int64_t& sum = sums[static_cast<std::size_t>(rank)];
      sum = detail::checked_add(sum, more, what);
    };
    add(result_.local_bytes, bytes, "the bytes of local copies");
    add(result_.local_pieces, pieces, "the pieces of local copies");
  }

  void check(const Transfer& transfer, int round, std::size_t number) const {
    const auto exists = [&](const Place& place) { return place.rank >= 0 && place.rank < schedule_.ranks; };
    if (exists(transfer.from) && exists(transfer.to)) return;
    throw BadInput("simulate: expected ranks from 0 to " + std::to_string(schedule_.ranks - 1) + ", found " +
                   describe(schedule_, round, static_cast<int>(number)));
  }

  const Schedule& schedule_;
  TrafficRound result_;
  std::unordered_map<std::int64_t, std::size_t> index_;
  bool by_bits_ = false;
};

// Bytes of the arrays of the rank that has the most of them.
std::int64_t rank_bytes(const Schedule& schedule) {
  std::int64_t most = 0;
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    std::int64_t bytes = 0;
    bool alike = true;  // on all ranks
    for (const ArraySpec& array : schedule.arrays) {
      if (array.elements.empty()) continue;
      const std::int64_t one =
          detail::checked_multiply(array.elements_on(rank), array.element_bytes, "the bytes of an array");
      bytes = detail::checked_add(bytes, one, "the bytes of a rank's arrays");
      alike = alike && array.elements.size() == 1;
    }
    most = std::max(most, bytes);
    if (alike) break;
  }
  return most;
}

}  // namespace

Traffic traffic_of(const Schedule& schedule) {
  Traffic traffic{schedule.name, schedule.ranks, {}, rank_bytes(schedule)};
  std::set<int> written;
  std::optional<RoundReader> reader;
  for (std::size_t k = 0; k < schedule.rounds.size(); ++k) {
    const Round& round = schedule.rounds[k];
    const bool waits =
        std::ranges::any_of(round.transfers, [&](const Transfer& t) { return written.contains(t.from.array); });
    if (reader && waits) {
      traffic.rounds.push_back(reader->finish());
      reader.reset();
      written.clear();
    }
    if (!reader) reader.emplace(schedule);
    reader->add(round, static_cast<int>(k));
    for (const Transfer& transfer : round.transfers) written.insert(transfer.to.array);
  }
  if (reader) traffic.rounds.push_back(reader->finish());
  return traffic;
}

Traffic allreduce_traffic(const AllReduceSpec& spec) {
  if (spec.ranks < 1 || spec.ranks > max_ranks) {
    throw BadInput("allreduce: expected 1 to " + std::to_string(max_ranks) + " ranks, found " +
                   std::to_string(spec.ranks));
  }
  if (spec.elements < 0) {
    throw BadInput("allreduce: expected 0 elements or more, found " + std::to_string(spec.elements));
  }
  if (spec.algorithm == ReduceAlgorithm::automatic || spec.algorithm == ReduceAlgorithm::by_host) {
    throw BadInput("allreduce: expected one_shot or two_shot, found " + std::string(to_string(spec.algorithm)) +
                   ": a simulation needs a definite algorithm, whose messages do not depend on hosts");
  }
  const std::int64_t all = detail::checked_multiply(spec.elements, bytes_of(spec.type), "the bytes of an all-reduce");
  const bool two_shot = spec.algorithm == ReduceAlgorithm::two_shot;
  const std::int64_t part = two_shot ? (all + spec.ranks - 1) / spec.ranks : all;
  Traffic traffic{"allreduce", spec.ranks, {}, detail::checked_multiply(2, all, "the bytes of an all-reduce")};
  TrafficRound round;
  round.kind = TrafficRound::Kind::everyone;
  round.bytes = part;
  round.local_bytes = {part};
  round.collective = true;
  round.schedule_rounds = {0, 1};
  traffic.rounds.push_back(round);
  if (two_shot) {
    round.local_bytes.clear();
    round.schedule_rounds = {2};
    traffic.rounds.push_back(round);
  }
  return traffic;
}

namespace {

// A permutation of index bits, seen from the ranks.
struct RankBits {
  int local_bits = 0;
  int rank_bits = 0;
  std::vector<int> from;   // the bit of the index that goes to each bit
  std::vector<int> free;   // rank bits that come from local bits
  std::vector<int> bound;  // rank bits that come from rank bits
  bool bound_stay = true;  // each bound bit stays where it is

  explicit RankBits(const PermuteBitsSpec& spec)
      : local_bits(spec.local_bits), rank_bits(spec.bits - spec.local_bits), from(spec.permutation.size()) {
    for (std::size_t i = 0; i < spec.permutation.size(); ++i) {
      from[static_cast<std::size_t>(spec.permutation[i])] = static_cast<int>(i);
    }
    for (int bit = 0; bit < rank_bits; ++bit) {
      const int source = source_of(bit);
      (source < local_bits ? free : bound).push_back(bit);
      if (source >= local_bits && source != local_bits + bit) bound_stay = false;
    }
  }

  // The bit of the index that goes to rank bit `bit`.
  [[nodiscard]] int source_of(int bit) const {
    return from[static_cast<std::size_t>(local_bits) + static_cast<std::size_t>(bit)];
  }

  // The bound bits of the rank that receives from `rank`; the free bits take all values.
  [[nodiscard]] int bound_bits(int rank) const {
    int target = 0;
    for (const int bit : bound) target |= (rank >> (source_of(bit) - local_bits) & 1) << bit;
    return target;
  }

  // The elements of a rank that keep their place: their index has equal bits along every cycle of the permutation.
  [[nodiscard]] std::int64_t staying(int rank) const {
    std::int64_t elements = 1;
    std::vector<bool> seen(from.size(), false);
    for (std::size_t start = 0; start < from.size(); ++start) {
      if (seen[start]) continue;
      int known = -1;
      for (auto bit = start; !seen[bit]; bit = static_cast<std::size_t>(from[bit])) {
        seen[bit] = true;
        if (static_cast<int>(bit) < local_bits) continue;
        const int value = rank >> (static_cast<int>(bit) - local_bits) & 1;
        if (known >= 0 && known != value) return 0;
        known = value;
      }
      if (known < 0) elements *= 2;
    }
    return elements;
  }
};

void check(const PermuteBitsSpec& spec) {
  // One rank's part has few transfers, and building it checks everything.
  (void)permute_bits(spec, 0);
  if (spec.bits - spec.local_bits > 20) {
    throw BadInput("permutation: expected at most " + std::to_string(max_ranks) + " ranks, found 2^" +
                   std::to_string(spec.bits - spec.local_bits));
  }
}

}  // namespace

Traffic permutation_traffic(const PermuteBitsSpec& spec) {
  check(spec);
  const RankBits bits(spec);
  const int ranks = 1 << bits.rank_bits;
  const int free = static_cast<int>(bits.free.size());
  const std::int64_t elements = std::int64_t{1} << (bits.local_bits - free);
  const std::int64_t bytes = encoded_bytes(
      spec.codec, spec.type,
      elements * (spec.type == ElementType::bytes ? spec.element_bytes : spec.element_bytes / bytes_of(spec.type)));
  const std::int64_t state =
      detail::checked_multiply(std::int64_t{1} << bits.local_bits, spec.element_bytes, "the bytes of a state");
  Traffic traffic{"permute_bits", ranks, {}, state};
  TrafficRound round;
  round.schedule_rounds = {0};
  const auto local = [&](int rank) {
    const int fixed = bits.bound_bits(rank);
    int mask = 0;
    for (const int bit : bits.bound) mask |= 1 << bit;
    const std::int64_t moved = (rank & mask) == fixed ? elements - bits.staying(rank) : 0;
    return detail::checked_multiply(moved, spec.element_bytes, "the bytes of local copies");
  };
  if (bits.bound_stay) {
    const bool all = free == bits.rank_bits && ranks > many_by_bits;
    round.kind = all ? TrafficRound::Kind::everyone : TrafficRound::Kind::bits;
    round.bytes = bytes;
    if (!all) round.bits = bits.free;
    round.mixed = !all && 1 << free > many_partners;
    if (local(0) > 0 || local(ranks - 1) > 0) round.local_bytes = {std::max(local(0), local(ranks - 1))};
    traffic.rounds.push_back(std::move(round));
    return traffic;
  }
  if (ranks > max_listed_messages >> free) too_many(std::int64_t{ranks} << free);
  round.local_bytes.resize(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    round.local_bytes[static_cast<std::size_t>(rank)] = local(rank);
    std::vector<int> targets;
    for (int value = 0; value < 1 << free; ++value) {
      int target = bits.bound_bits(rank);
      for (std::size_t i = 0; i < bits.free.size(); ++i) target |= (value >> i & 1) << bits.free[i];
      if (target != rank) targets.push_back(target);
    }
    std::ranges::sort(targets, {}, [&](int target) { return target ^ rank; });
    for (const int target : targets) round.messages.push_back({rank, target, bytes});
  }
  round.mixed = 1 << free > many_partners;
  traffic.rounds.push_back(std::move(round));
  return traffic;
}

Traffic shared_permutation_traffic(const PermuteBitsSpec& spec) {
  check(spec);
  constexpr std::int64_t line_bytes = 64;
  const RankBits bits(spec);
  const int ranks = 1 << bits.rank_bits;
  const std::int64_t state =
      detail::checked_multiply(std::int64_t{1} << bits.local_bits, spec.element_bytes, "the bytes of a state");
  // If a bit that numbers elements of a line moves, every line has elements that move.
  bool in_lines = false;
  for (int bit = 0; bit < bits.local_bits && spec.element_bytes << bit < line_bytes; ++bit) {
    in_lines = in_lines || spec.permutation[static_cast<std::size_t>(bit)] != bit;
  }
  Traffic traffic{"permute_bits", ranks, std::vector<TrafficRound>(1), state};
  TrafficRound& round = traffic.rounds[0];
  round.schedule_rounds = {0};
  round.local_in_place = true;
  round.shared = !bits.free.empty() || !bits.bound_stay;
  for (int rank = 0; rank < ranks; ++rank) {
    round.local_bytes.push_back(in_lines ? state : state - bits.staying(rank) * spec.element_bytes);
  }
  return traffic;
}

void Traffic::check() const {
  for (const TrafficRound& round : rounds) {
    for (const Message& message : round.messages) {
      const bool exist = message.from >= 0 && message.from < ranks && message.to >= 0 && message.to < ranks;
      if (exist && message.from != message.to && message.bytes >= 0) continue;
      throw BadInput("a message: expected two different ranks below " + std::to_string(ranks) +
                     " and 0 bytes or more, found rank " + std::to_string(message.from) + " to rank " +
                     std::to_string(message.to) + ", " + base::counted(message.bytes, "byte"));
    }
    for (const auto& [numbers, what] :
         {std::pair(&round.local_bytes, "local_bytes"), std::pair(&round.local_pieces, "local_pieces")}) {
      if (numbers->size() <= 1 || numbers->size() == static_cast<std::size_t>(ranks)) continue;
      throw BadInput(std::string(what) + ": expected one number per rank, one for all, or none, found " +
                     std::to_string(numbers->size()));
    }
  }
}

Traffic Traffic::listed() const {
  Traffic result{name, ranks, {}, rank_bytes};
  for (const TrafficRound& round : rounds) {
    TrafficRound list = round;
    list.kind = TrafficRound::Kind::list;
    list.bytes = 0;
    list.bits.clear();
    if (round.kind == TrafficRound::Kind::everyone) {
      const std::int64_t messages = std::int64_t{ranks} * (ranks - 1);
      if (messages > max_listed_messages) too_many(messages);
      list.mixed = ranks > many;
      for (int from = 0; from < ranks; ++from) {
        for (int step = 1; step < ranks; ++step) list.messages.push_back({from, (from + step) % ranks, round.bytes});
      }
    }
    if (round.kind == TrafficRound::Kind::bits) {
      const std::int64_t each = (std::int64_t{1} << round.bits.size()) - 1;
      if (each * ranks > max_listed_messages) too_many(each * ranks);
      for (int from = 0; from < ranks; ++from) {
        for (std::int64_t value = 1; value <= each; ++value) {
          int distance = 0;
          for (std::size_t i = 0; i < round.bits.size(); ++i) {
            distance |= static_cast<int>(value >> i & 1) << round.bits[i];
          }
          list.messages.push_back({from, from ^ distance, round.bytes});
        }
      }
    }
    result.rounds.push_back(std::move(list));
  }
  return result;
}

}  // namespace onehop
