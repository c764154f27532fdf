#include "src/channel/channel_specs.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <tuple>

#include "onehop/error.h"
#include "onehop/tuning.h"
#include "src/base/slot_policy.h"
#include "src/base/text.h"
#include "src/channel/adaptive_stores.h"

namespace onehop::detail {
namespace {

constexpr int max_slots = 1 << 16;
constexpr std::int64_t max_slot_bytes = std::int64_t{1} << 38;
// Half of what a flag counts, because plans cut chunks between elements: one may be short, and only it and its
// neighbour together are longer than chunk_bytes.
constexpr std::int64_t max_chunks = whole / 2;

std::string text(std::int64_t value) { return std::to_string(value); }

std::string end_of(const Wanted& end) {
  const std::string tag = " (tag " + text(end.tag) + ")";
  return "rank " + text(end.owner) + (end.sends != 0 ? " sends " : " receives ") + base::counted(end.bytes, "byte") +
         " " + (end.sends != 0 ? "to" : "from") + " rank " + text(end.peer) + tag;
}

void check(const Wanted& end, int ranks) {
  if (end.peer < 0 || end.peer >= ranks) {
    throw BadInput("open_channels: " + end_of(end) + ", but the group has ranks 0 to " + text(ranks - 1));
  }
  if (end.bytes < 0 || end.slots < 0 || end.slot_bytes < 0 || end.chunk_bytes < 0) {
    throw BadInput("open_channels: " + end_of(end) + ": bytes, slots, slot_bytes and chunk_bytes must not be negative");
  }
  if (end.sends != 0 && (end.slots > max_slots || end.slot_bytes > max_slot_bytes)) {
    throw BadInput("open_channels: " + end_of(end) + " through " + base::counted(end.slots, "slot") + " of " +
                   base::counted(end.slot_bytes, "byte") + "; at most " + text(max_slots) + " slots of at most " +
                   text(max_slot_bytes) + " bytes are possible");
  }
  if (end.sends != 0 && end.bytes > 0 && end.bytes / end.slot_bytes > std::int64_t{1} << 40) {
    throw BadInput("open_channels: " + end_of(end) + ": slots of " + base::counted(end.slot_bytes, "byte") +
                   " are too small for it");
  }
}

auto key(const Wanted& end) {
  const int from = end.sends != 0 ? end.owner : end.peer;
  const int to = end.sends != 0 ? end.peer : end.owner;
  return std::tuple(from, to, end.tag);
}

[[noreturn]] void throw_unmatched(const Wanted& end) {
  throw Mismatch("open_channels: " + end_of(end) + ", but rank " + text(end.peer) +
                 (end.sends != 0 ? " does not receive from" : " does not send to") + " rank " + text(end.owner) +
                 " with that tag; request both ends in the same open_channels (do all ranks prepare the same plan?)");
}

void check_pair(const Wanted& sender, const Wanted& receiver) {
  if (sender.bytes != receiver.bytes) {
    throw Mismatch("open_channels: " + end_of(sender) + ", but rank " + text(receiver.owner) + " expects " +
                   base::counted(receiver.bytes, "byte"));
  }
  if (sender.signature != receiver.signature) {
    throw Mismatch(
        "open_channels: " + end_of(sender) + " and rank " + text(receiver.owner) +
        " receives as many, but the bytes mean different things to them (order, element sizes or combination differ); "
        "do all ranks build the schedule from the same parameters?");
  }
}

}  // namespace

Wanted wanted(const ChannelSpec& spec, int owner) {
  Wanted end;
  end.owner = owner;
  end.peer = spec.peer;
  end.tag = spec.tag;
  end.sends = spec.direction == ChannelSpec::Direction::send ? 1 : 0;
  end.bytes = spec.bytes;
  end.signature = spec.signature;
  const Tuning& tuned = tuning();
  const SizeRule& rule = tuned.rule(spec.bytes);
  end.stores = static_cast<std::int32_t>(rule.stores);
  const base::SlotSizes sizes =
      base::channel_slots(spec.bytes, {spec.slots, spec.slot_bytes, spec.chunk_bytes},
                          {tuned.small_bytes, tuned.small_slots, rule.chunk_bytes, max_chunks});
  end.slots = sizes.slots;
  end.slot_bytes = sizes.slot_bytes;
  end.chunk_bytes = sizes.chunk_bytes;
  const bool adaptive = tuned.adaptive_stores && spec.peer != owner && sizes.slots <= most_adaptive_slots &&
                        stores_adapt(rule.stores, std::min(spec.bytes, sizes.slot_bytes));
  end.adaptive = adaptive ? 1 : 0;
  return end;
}

namespace {

// Header of a rank's contribution. `text_bytes` bytes of text follow (its transports, or why it refuses), then its
// requests.
struct Opening {
  static constexpr std::uint64_t magic = 0x676e'696e'6570'6f01;  // no other collective step begins with it
  std::uint64_t mark = magic;
  std::int32_t refused = 0;
  std::int32_t text_bytes = 0;
  MemoryLeft left;
};

std::vector<std::byte> packed(bool refused, const std::string& words, std::span<const Wanted> own) {
  Opening head;
  head.refused = refused ? 1 : 0;
  head.text_bytes = static_cast<std::int32_t>(words.size());
  if (!refused && !own.empty()) head.left = memory_left();
  const auto requests = std::as_bytes(own);
  std::vector<std::byte> bytes(sizeof head + words.size() + requests.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, words.data(), words.size());
  if (!requests.empty()) std::memcpy(bytes.data() + sizeof head + words.size(), requests.data(), requests.size());
  return bytes;
}

struct Contribution {
  bool refused = false;
  std::string words;
  MemoryLeft left;
  std::vector<Wanted> requests;
};

// Returns nothing for a contribution to another step.
std::optional<Contribution> unpacked(std::span<const std::byte> bytes) {
  Opening head;
  head.mark = 0;
  if (bytes.size() >= sizeof head) std::memcpy(&head, bytes.data(), sizeof head);
  if (head.mark != Opening::magic) return std::nullopt;
  Contribution given;
  given.refused = head.refused != 0;
  given.left = head.left;
  bytes = bytes.subspan(sizeof head);
  const auto length = static_cast<std::size_t>(head.text_bytes);
  given.words.assign(reinterpret_cast<const char*>(bytes.data()), length);
  bytes = bytes.subspan(length);
  given.requests.resize(bytes.size() / sizeof(Wanted));
  if (!bytes.empty()) std::memcpy(given.requests.data(), bytes.data(), given.requests.size() * sizeof(Wanted));
  return given;
}

}  // namespace

void throw_refusal(const Gathered& gathered, const std::string& step) {
  for (std::size_t r = 0; r < gathered.size(); ++r) {
    const auto given = unpacked(gathered[r]);
    if (given && given->refused) throw Error(step + " failed on rank " + std::to_string(r) + ": " + given->words);
  }
}

std::vector<Wanted> exchange(GroupState& group, std::span<const Wanted> own, const std::string& transports,
                             std::vector<MemoryLeft>& left) {
  const Gathered gathered = group.allgather(packed(false, transports, own));
  throw_refusal(gathered, "opening channels");
  std::vector<Wanted> all;
  std::string first;
  for (std::size_t r = 0; r < gathered.size(); ++r) {
    const auto given = unpacked(gathered[r]);
    if (!given) {
      group.out_of_step = true;
      throw Mismatch("open_channels: rank " + std::to_string(r) +
                     " is in another collective step (a barrier, an all-gather, a split); do all ranks make the same "
                     "steps in the same order?");
    }
    if (r == 0) first = given->words;
    if (given->words != first) {
      throw Mismatch("open_channels: rank 0 opens its channels over " + first + ", but rank " + std::to_string(r) +
                     " over " + given->words + "; all ranks must ask for the same transport");
    }
    left.push_back(given->left);
    all.insert(all.end(), given->requests.begin(), given->requests.end());
  }
  return all;
}

void exchange_refusal(GroupState& group, const std::string& why) {
  static_cast<void>(group.allgather(packed(true, why.empty() ? "no reason given" : why, {})));
}

std::vector<ChannelShape> match(std::span<const Wanted> all, int rank, int ranks, std::uint32_t first_id) {
  std::vector<const Wanted*> order;
  order.reserve(all.size());
  for (const Wanted& end : all) {
    check(end, ranks);
    order.push_back(&end);
  }
  // Puts the two ends of each channel next to each other, the sender first.
  std::sort(order.begin(), order.end(), [](const Wanted* a, const Wanted* b) {
    return std::tuple_cat(key(*a), std::tuple(-a->sends)) < std::tuple_cat(key(*b), std::tuple(-b->sends));
  });
  std::vector<ChannelShape> own;
  std::uint32_t id = first_id;
  for (std::size_t i = 0; i < order.size(); i += 2, ++id) {
    const Wanted& sender = *order[i];
    if (sender.sends == 0 || i + 1 == order.size() || key(*order[i + 1]) != key(sender)) throw_unmatched(sender);
    const Wanted& receiver = *order[i + 1];
    if (receiver.sends != 0 || (i + 2 < order.size() && key(*order[i + 2]) == key(sender))) {
      throw BadInput("open_channels: " + end_of(receiver) +
                     " twice; channels between the same two ranks need different tags");
    }
    check_pair(sender, receiver);
    if (sender.owner != rank && receiver.owner != rank) continue;
    own.push_back({sender.owner, receiver.owner, sender.tag, sender.bytes, sender.slot_bytes, sender.chunk_bytes,
                   sender.slots, static_cast<StoreKind>(sender.stores), sender.adaptive != 0, id});
  }
  return own;
}

}  // namespace onehop::detail
