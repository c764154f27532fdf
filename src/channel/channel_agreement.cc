#include "src/channel/channel_agreement.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

#include "onehop/error.h"
#include "src/base/memory_left.h"
#include "src/group/agreement.h"
#include "src/group/memory_pools.h"
#include "src/group/reservation.h"

namespace onehop::detail {
namespace {

// A sum of hashes, modulo 2^64 each.
struct Digest {
  std::array<std::uint64_t, 2> sums{};
};

std::uint64_t mixed(std::uint64_t word) {  // the finaliser of splitmix64
  word = (word ^ word >> 30) * 0xbf58'476d'1ce4'e5b9;
  word = (word ^ word >> 27) * 0x94d0'49bb'1331'11eb;
  return word ^ word >> 31;
}

// Adds the hash of a channel for its sender, and subtracts it for its receiver.
void add(Digest& digest, const Wanted& end) {
  const ChannelShape shape = shape_of(end);
  const std::array<std::uint64_t, 10> words{static_cast<std::uint64_t>(shape.from),
                                            static_cast<std::uint64_t>(shape.to),
                                            static_cast<std::uint64_t>(shape.tag),
                                            static_cast<std::uint64_t>(shape.bytes),
                                            static_cast<std::uint64_t>(shape.slot_bytes),
                                            static_cast<std::uint64_t>(shape.chunk_bytes),
                                            static_cast<std::uint64_t>(shape.slots),
                                            static_cast<std::uint64_t>(shape.stores),
                                            shape.adaptive ? 1ULL : 0ULL,
                                            end.signature};
  for (std::size_t i = 0; i < digest.sums.size(); ++i) {
    std::uint64_t hash = mixed(0x9e37'79b9'7f4a'7c15 * (i + 1));
    for (const std::uint64_t word : words) hash = mixed(hash ^ word) + 0x9e37'79b9'7f4a'7c15;
    digest.sums[i] += end.sends != 0 ? hash : 0 - hash;
  }
}

// Header of a rank's contribution. `text_bytes` bytes of text follow (its transports, or why it refuses), then, in the
// second gathering, its requests.
struct Opening {
  static constexpr std::uint64_t magic = 0x676e'696e'6570'6f02;  // no other collective step begins with it
  std::uint64_t mark = magic;
  std::int32_t refused = 0;
  std::int32_t text_bytes = 0;
  std::int32_t impossible = 0;  // a request is invalid or there twice
  std::uint32_t ends = 0;
  Digest digest;
  std::int64_t need = 0;  // bytes
  MemoryLeft left;
};

std::vector<std::byte> packed(Opening head, const std::string& words, std::span<const Wanted> requests) {
  head.text_bytes = static_cast<std::int32_t>(words.size());
  const auto rest = std::as_bytes(requests);
  std::vector<std::byte> bytes(sizeof head + words.size() + rest.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, words.data(), words.size());
  if (!rest.empty()) std::memcpy(bytes.data() + sizeof head + words.size(), rest.data(), rest.size());
  return bytes;
}

// Its texts and requests are those of the gathered bytes: every rank reads as many contributions as there are ranks.
struct Contribution {
  Opening head;
  std::string_view words;
  std::span<const std::byte> requests;
};

// Returns nothing for a contribution to another step.
std::optional<Contribution> unpacked(std::span<const std::byte> bytes) {
  Contribution given;
  given.head.mark = 0;
  if (bytes.size() >= sizeof given.head) std::memcpy(&given.head, bytes.data(), sizeof given.head);
  if (given.head.mark != Opening::magic) return std::nullopt;
  bytes = bytes.subspan(sizeof given.head);
  const auto length = static_cast<std::size_t>(given.head.text_bytes);
  if (length > bytes.size()) return std::nullopt;
  given.words = {reinterpret_cast<const char*>(bytes.data()), length};
  given.requests = bytes.subspan(length);
  return given;
}

[[noreturn]] void throw_other_step(GroupState& group, std::size_t rank) {
  group.why_out_of_step = "open_channels: the ranks were in different steps";
  throw Mismatch("open_channels: rank " + std::to_string(rank) +
                 " is in another collective step (a barrier, an all-gather, a split); do all ranks make the same "
                 "steps in the same order?");
}

// The requests of all ranks together.
struct Summary {
  bool fits = true;  // every request has its counterpart
  std::uint32_t most_ends = 0;
  std::vector<std::int64_t> need;
  std::vector<MemoryLeft> left;
};

Summary gather_digests(GroupState& group, const Opening& own, const std::string& transports) {
  const Gathered gathered = group.allgather(packed(own, transports, {}));
  throw_refusal(group, gathered, "opening channels");
  Summary summary;
  Digest total;
  std::string_view first;
  for (std::size_t r = 0; r < gathered.size(); ++r) {
    const auto given = unpacked(gathered[r]);
    if (!given) throw_other_step(group, r);
    if (r == 0) first = given->words;
    if (given->words != first) {
      throw Mismatch("open_channels: rank 0 opens its channels over " + std::string(first) + ", but rank " +
                     std::to_string(r) + " over " + std::string(given->words) +
                     "; all ranks must ask for the same transport");
    }
    summary.fits = summary.fits && given->head.impossible == 0;
    summary.most_ends = std::max(summary.most_ends, given->head.ends);
    summary.need.push_back(given->head.need);
    summary.left.push_back(given->head.left);
    for (std::size_t i = 0; i < total.sums.size(); ++i) total.sums[i] += given->head.digest.sums[i];
  }
  summary.fits = summary.fits && std::ranges::all_of(total.sums, [](std::uint64_t sum) { return sum == 0; });
  return summary;
}

std::vector<Wanted> gather_requests(GroupState& group, std::span<const Wanted> own) {
  const Gathered gathered = group.allgather(packed({}, {}, own));
  std::vector<Wanted> all;
  for (std::size_t r = 0; r < gathered.size(); ++r) {
    const auto given = unpacked(gathered[r]);
    if (!given) throw_other_step(group, r);
    const std::size_t before = all.size();
    all.resize(before + given->requests.size() / sizeof(Wanted));
    if (all.size() > before) std::memcpy(&all[before], given->requests.data(), (all.size() - before) * sizeof(Wanted));
  }
  return all;
}

std::vector<ChannelShape> own_shapes(std::span<const Wanted> own) {
  std::vector<ChannelShape> shapes;
  for (const Wanted& end : own) {
    // A channel of a rank to itself has both ends here, and is listed once.
    if (end.sends != 0 || end.peer != end.owner) shapes.push_back(shape_of(end));
  }
  return shapes;
}

constexpr std::int64_t released_bytes = 128;  // of a channel, at its sender

std::int64_t ring_bytes_of(const Wanted& sender) {
  std::int64_t bytes = 0;
  return __builtin_mul_overflow(sender.slot_bytes + 256, std::int64_t{sender.slots}, &bytes) ? no_memory_limit : bytes;
}

// If two ranks share memory, only the receiver has slots; otherwise both ends have.
std::int64_t sender_need(const GroupState& group, const Wanted& sender) {
  const auto from = static_cast<std::size_t>(sender.owner);
  const auto to = static_cast<std::size_t>(sender.peer);
  return group.pages[from].host == group.pages[to].host ? released_bytes : ring_bytes_of(sender);
}

// The bytes that each rank needs for the requests of all ranks.
std::vector<std::int64_t> memory_needs(const GroupState& group, std::span<const Wanted> all) {
  std::vector<std::int64_t> need(group.pages.size());
  for (const Wanted& end : all) {
    if (end.sends == 0) continue;
    std::int64_t& from = need[static_cast<std::size_t>(end.owner)];
    from = sum_of_bytes(from, sender_need(group, end));
    std::int64_t& to = need[static_cast<std::size_t>(end.peer)];
    to = sum_of_bytes(to, ring_bytes_of(end));
  }
  return need;
}

// The memory that a rank needs for its own ends, if both ends of each channel ask for the same slots.
std::int64_t own_memory_need(const GroupState& group, std::span<const Wanted> own) {
  std::int64_t need = 0;
  for (const Wanted& end : own)
    need = sum_of_bytes(need, end.sends != 0 ? sender_need(group, end) : ring_bytes_of(end));
  return need;
}

}  // namespace

std::vector<ChannelShape> agree_on_channels(GroupState& group, std::span<const Wanted> own,
                                            const std::string& transports, bool backed) {
  Opening head;
  head.ends = static_cast<std::uint32_t>(own.size());
  head.impossible = is_possible(own, group.size) ? 0 : 1;
  if (head.impossible == 0) {
    for (const Wanted& end : own) add(head.digest, end);
    head.need = own_memory_need(group, own);
  }
  if (!own.empty()) head.left = memory_left();
  Summary summary = gather_digests(group, head, transports);
  std::vector<ChannelShape> shapes;
  if (summary.fits) {
    shapes = own_shapes(own);
  } else {
    const std::vector<Wanted> all = gather_requests(group, own);
    shapes = match(all, group.rank, group.size);
    summary.need = memory_needs(group, all);
  }
  if (backed) {
    check_memory(group, summary.need, summary.left, "the slots of the channels",
                 "use smaller arrays, fewer ranks on a machine, or a smaller slot_bytes");
  }
  number(shapes, group.channels_opened);
  group.channels_opened += summary.most_ends;
  return shapes;
}

void throw_refusal(GroupState& group, const Gathered& gathered, const std::string& step) {
  for (std::size_t r = 0; r < gathered.size(); ++r) {
    const auto given = unpacked(gathered[r]);
    if (given && given->head.refused != 0) throw_failed(group, step, r, std::as_bytes(std::span(given->words)));
  }
}

void exchange_refusal(GroupState& group, const std::string& why) {
  Opening head;
  head.refused = 1;
  static_cast<void>(group.allgather(packed(head, why.empty() ? "no reason given" : why, {})));
}

}  // namespace onehop::detail
