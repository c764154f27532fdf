#include "src/channel/channel_specs.h"

#include <algorithm>
#include <map>
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
                        stores_adapt(std::min(spec.bytes, sizes.slot_bytes));
  end.adaptive = adaptive ? 1 : 0;
  return end;
}

bool is_possible(std::span<const Wanted> own, int ranks) {
  try {
    for (const Wanted& end : own) check(end, ranks);
  } catch (const BadInput&) {
    return false;
  }
  std::vector<std::tuple<int, int, int, int>> ends;
  for (const Wanted& end : own) ends.push_back(std::tuple_cat(key(end), std::tuple(end.sends)));
  std::ranges::sort(ends);
  return std::ranges::adjacent_find(ends) == ends.end();
}

void number(std::span<ChannelShape> shapes, std::uint32_t first_id) {
  const auto key_of = [](const ChannelShape& shape) { return std::tuple(shape.from, shape.to, shape.tag); };
  std::ranges::sort(shapes, {}, key_of);
  std::map<int, std::uint32_t> next;  // by the other rank
  for (ChannelShape& shape : shapes) {
    // Of the two ranks, one is this one, and the sum of both tells which the other is.
    shape.id = first_id + next[shape.from + shape.to]++;
  }
}

ChannelShape shape_of(const Wanted& end) {
  const auto [from, to, tag] = key(end);
  return {from,
          to,
          tag,
          end.bytes,
          end.slot_bytes,
          end.chunk_bytes,
          end.slots,
          static_cast<StoreKind>(end.stores),
          end.adaptive != 0,
          0};
}

std::vector<ChannelShape> match(std::span<const Wanted> all, int rank, int ranks) {
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
  for (std::size_t i = 0; i < order.size(); i += 2) {
    const Wanted& sender = *order[i];
    if (sender.sends == 0 || i + 1 == order.size() || key(*order[i + 1]) != key(sender)) throw_unmatched(sender);
    const Wanted& receiver = *order[i + 1];
    if (receiver.sends != 0 || (i + 2 < order.size() && key(*order[i + 2]) == key(sender))) {
      throw BadInput("open_channels: " + end_of(receiver) +
                     " twice; channels between the same two ranks need different tags");
    }
    check_pair(sender, receiver);
    if (sender.owner != rank && receiver.owner != rank) continue;
    own.push_back(shape_of(sender));
  }
  return own;
}

}  // namespace onehop::detail
