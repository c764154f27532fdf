#include "collectives/exchange.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <string>

#include "collectives/header.h"
#include "collectives/policy.h"
#include "collectives/relay.h"
#include "onehop/error.h"
#include "src/base/clock.h"
#include "src/base/slot_policy.h"
#include "src/base/trace.h"
#include "src/channel/staging.h"
#include "src/group/group_trace.h"

namespace onehop::collectives::detail {

namespace {

// Paths between two ranks: the header, more lines for it, first phase, second phase.
constexpr int first_phase_tag = 1 + static_cast<int>(more_lines);
constexpr int second_phase_tag = first_phase_tag + 1;
// The store kind is chosen at run time (StoreChoice) for 4 KiB and more to each rank, for each power of two by itself.
constexpr int shortest_width = 13;
// Up to this width, choices begin with plain stores. With near cores these are the faster ones, but by less than what
// makes a choice change; with far cores non-temporal ones are faster by so much that a choice changes soon.
constexpr int plain_width = 13;
constexpr std::size_t most_choices = 512;
constexpr std::uint64_t timed_operations = 8;  // one of so many is timed,
constexpr int before_trial = 6;                // and each of the last ones before a trial

double now_us() noexcept { return base::steady_seconds() * 1e6; }

ReducePlace place_of(const Group& group, TransportKind transport) {
  bool in_memory = transport != TransportKind::mpi && transport != TransportKind::ucx;
  for (int r = 0; r < group.size(); ++r) in_memory = in_memory && group.shares_memory(r);
  return in_memory ? ReducePlace::shared_memory : ReducePlace::network;
}

[[noreturn]] void throw_failed() {
  throw BadInput("these Collectives have failed and cannot be used again; make a new group and new Collectives");
}

// Whether this rank and the only other one exchange messages over MPI.
bool is_pair(const Group& group, TransportKind transport) {
  return group.size() == 2 && carrier(group, 1 - group.rank(), transport) == to_string(TransportKind::mpi);
}

// `usual` is what the tuning says. In place, the lines of an array that ranks share lie in the cache of the rank that
// has just written them.
StoreKind first_kind(const StoreChoice::Key& key, StoreKind usual) {
  const bool plain = key.width <= plain_width || key.shared == SharedUse::in_place;
  return plain && usual == StoreKind::nontemporal ? StoreKind::plain : usual;
}
StoreKind other_than(StoreKind kind) {
  return kind == StoreKind::nontemporal ? StoreKind::plain : StoreKind::nontemporal;
}

}  // namespace

StoreChoice::StoreChoice(const Key& of, StoreKind usual)
    : key(of), now(first_kind(of, usual)), next(now), decision(now, other_than(now)) {}

Exchange::Exchange(const Group& of, const CollectivesOptions& options)
    : group(of),
      rank(of.rank()),
      size(of.size()),
      sources_(index(of.size())),
      shifted_(index(of.size())),
      places_of_(index(of.size())),
      mapped_(of.size()),
      results_(index(of.size())) {
  base::SlotSizes sizes = base::collective_slots(size, {options.slots, options.slot_bytes});
  is_pair_over_mpi = is_pair(group, options.transport) && options.slot_bytes == 0;
  if (is_pair_over_mpi) {
    sizes.slot_bytes = sizes.chunk_bytes = message_bytes;
    if (options.slots == 0) sizes.slots = message_slots;
  }
  slots_ = sizes.slots;
  slot_bytes = sizes.slot_bytes;
  if (slots_ < 2) {  // with one slot, ranks would wait for each other to receive before they receive themselves
    throw BadInput("Collectives: expected 2 slots or more per path, found " + std::to_string(slots_));
  }
  table = agreed_table(group, place_of(group, options.transport));
  if (!table.in_memory()) first_line_bytes = most_line_bytes = in_message_bytes(size, is_pair_over_mpi);
  const int line_tags = table.in_memory() ? first_phase_tag : 1;
  const auto line_bytes = static_cast<std::int64_t>(sizeof(Header) + first_line_bytes);
  using Direction = ChannelSpec::Direction;
  std::vector<ChannelSpec> lines;
  std::vector<ChannelSpec> phases;
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    for (const Direction direction : {Direction::send, Direction::receive}) {
      for (int tag = 0; tag < line_tags; ++tag) {
        const std::int64_t bytes = tag == 0 ? line_bytes : static_cast<std::int64_t>(sizeof(Line));
        lines.push_back({.direction = direction, .peer = other, .bytes = bytes, .tag = tag});
      }
      for (const int tag : {first_phase_tag, second_phase_tag}) {
        phases.push_back({.direction = direction,
                          .peer = other,
                          .bytes = slot_bytes,
                          .tag = tag,
                          .slots = sizes.slots,
                          .slot_bytes = sizes.slot_bytes,
                          .chunk_bytes = sizes.chunk_bytes});
      }
    }
  }
  Channels short_ones = open_channels_unbacked(group, lines, options.transport);
  Channels long_ones = open_channels_unbacked(group, phases, options.transport);
  auto line_out = short_ones.senders.begin();
  auto line_in = short_ones.receivers.begin();
  auto sender = long_ones.senders.begin();
  auto receiver = long_ones.receivers.begin();
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    Peer& peer = peers_.emplace_back();
    peer.rank = other;
    peer.line_out = std::move(*line_out++);
    for (int i = 1; i < line_tags; ++i) peer.more_out[index(i - 1)] = std::move(*line_out++);
    for (Sender* end : {&peer.reduce_out, &peer.gather_out}) *end = std::move(*sender++);
    peer.line_in = std::move(*line_in++);
    for (int i = 1; i < line_tags; ++i) peer.more_in[index(i - 1)] = std::move(*line_in++);
    for (Receiver* end : {&peer.reduce_in, &peer.gather_in}) *end = std::move(*receiver++);
  }
  slot_bytes = peers_.empty() ? slot_bytes : peers_.front().reduce_out.ring().slot_bytes;
  for (const Peer& peer : peers_) staging_bytes += peer.line_in.back_slots();
  const std::int64_t longest_chunk = is_pair_over_mpi ? std::max(slot_bytes, most_encoded_chunk) : slot_bytes;
  gathered_.resize(index(longest_chunk));
  reduced_.resize(index(longest_chunk));
  if (table.in_memory()) in_lines_.resize(index(size) * most_line_bytes);
  if (shares_gathers()) areas_ = SharedAreas(group, slots_ * (slot_bytes + area_gap));
  choices.reserve(most_choices);
}

int Exchange::choice_for(const Operation& operation, std::int64_t bytes_to_each, SharedUse shared) {
  const auto width = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes_to_each)));
  if (!table.in_memory() || width < shortest_width) return -1;
  const Header& header = operation.header;
  const StoreChoice::Key key{header.kind, header.algorithm, header.codec, width, shared};
  const std::lock_guard lock(preparing_);
  const auto found = std::ranges::find(choices, key, &StoreChoice::key);
  if (found != choices.end()) return static_cast<int>(found - choices.begin());
  if (choices.size() == most_choices) return -1;
  choices.emplace_back(key, operation.stores);
  return static_cast<int>(std::ssize(choices)) - 1;
}

bool Exchange::is_timed(StoreChoice& choice) {
  return ++choice.operations % timed_operations == 0 || choice.now != choice.decision.chosen() ||
         choice.decision.tries_within(before_trial);
}

void Exchange::throw_busy() {
  throw BadInput("another operation on these Collectives is running; finish it first, or use separate Collectives");
}

void Exchange::start(const Operation& operation) {
  if (trace::is_on()) [[unlikely]]
    traced_from_ = trace::now();
  if (disagreed_) settle();
  if (broken) throw_failed();
  broken = true;  // stays so after an exception
  running = &operation;
  stores_ = operation.stores;
  choice_ = operation.choice;
  // A reduction in place has just read the lines that it writes, so the caches hold them.
  streams_ = operation.streams && !(operation.reduces && arrays.in_place());
  gather_with_reduce_ = false;
  switch (operation.path) {
    case Path::phases:
      start_phases();
      break;
    case Path::in_lines:
      start_in_line();
      break;
    case Path::by_host:
      send_headers();
      break;
    case Path::forwarded:
      start_forwarded();
      break;
    default:
      start_relayed();
  }
  broken = false;
}

void Exchange::start_phases() {
  const Operation& operation = *running;
  find_places();
  if (all_share_) choice_ = operation.shared_choices[in_place_ ? 1 : 0];
  if (choice_ < 0) {
    if (operation.uses_slots) back_staging();
    send_headers();
    if (!all_share_) send_ahead();
    return;
  }
  back_staging();
  StoreChoice& choice = choices[index(choice_)];
  stores_ = choice.now;
  if (rank == 0) choice.next = choice.decision.next();
  times_ = rank == 0 && is_timed(choice);
  const double begin = times_ ? now_us() : 0;
  send_headers();
  if (!all_share_) send_ahead();
  started_us_ = times_ ? now_us() - begin : 0;
}

void Exchange::finish() {
  if (broken) throw_failed();
  broken = true;
  switch (running->path) {
    case Path::phases:
      finish_phases();
      break;
    case Path::in_lines:
      finish_in_line();
      break;
    case Path::by_host:
      finish_by_host();
      break;
    case Path::forwarded:
      finish_forwarded();
      break;
    default:
      finish_relayed();
  }
  ++counters.operations;
  if (trace::is_on()) [[unlikely]]
    trace_end();
  running = nullptr;
  broken = false;
}

void Exchange::trace_end() {
  const std::int64_t bytes = counters.bytes_sent - traced_bytes_;
  traced_bytes_ = counters.bytes_sent;
  trace::record({.begin = traced_from_,
                 .end = trace::now(),
                 .name = trace::name_of(short_name(running->header.kind)),
                 .kind = trace::Kind::collective,
                 .bytes = bytes});
  for (int peer = 0; peer < size && size > 1; ++peer) {
    if (peer != rank) onehop::detail::trace_sent(group, peer, bytes / (size - 1));
  }
}

void Exchange::finish_phases() {
  const Operation& operation = *running;
  check_headers();
  if (places_.given() && !all_share_) {  // an array of another rank is not shared
    stores_ = operation.choice < 0 ? operation.stores : choices[index(operation.choice)].now;
    choice_ = -1;
  }
  // Excludes the wait for the headers of all ranks.
  const bool times = choice_ >= 0 && times_;
  const double begin = times ? now_us() : 0;
  all_share_ ? run_shared() : run_phases();
  if (choice_ >= 0) choose_stores(times ? started_us_ + now_us() - begin : 0);
}

}  // namespace onehop::collectives::detail
