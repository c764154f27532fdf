#include "collectives/policy.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>

#include "collectives/by_host.h"
#include "collectives/exchange.h"
#include "collectives/relay.h"
#include "onehop/tuning.h"

namespace onehop::collectives::detail {

namespace {

// Over a network, where every line would be a message, the whole contribution follows the header in one message, up to
// so many bytes in a group of eight ranks or fewer; in larger groups fewer, because every peer has slots of this
// length.
constexpr std::size_t most_in_message = 16384;
constexpr std::size_t least_in_message = 256;
// Below this length, the tuning's rules for short messages give the store kind and the chunks.
constexpr std::int64_t short_bytes = 4 << 10;
// From this length on, sending fewer bytes between hosts saves more than the additional steps inside them cost.
constexpr std::int64_t shortest_by_host = 1 << 10;
// But a contribution that follows its header in one message takes one step, which is faster as long as a host sends no
// more than this. Two hosts with two ranks each: 2 KiB took 55 instead of 70 µs, at 1 Gbit/s 72 instead of 75, and 4
// KiB took 140 instead of 80 there.
constexpr std::int64_t most_in_one_step = 8 << 10;
// Where a host would send more than this in another operation than an all-reduce, it sends each number once a host.
constexpr std::int64_t most_sent_to_each_rank = 64 << 10;
// Shorter blocks go straight to all ranks, since each message costs more than its bytes.
constexpr std::int64_t shortest_forwarded = 16 << 10;
// And so do blocks where the rank that sends most would hardly send less.
constexpr double least_gain = 1.05;
// Chunks of what a rank passes on (chunks_of_part) are no longer than a message without a handshake. Four hosts at 100
// Mbit/s: with half as long chunks 256 KiB took 42 instead of 32 ms, with 64 KiB for long blocks 4 MiB took 506 instead
// of 422 ms.
constexpr std::int64_t shortest_forwarded_chunk = 8 << 10;
constexpr std::int64_t longest_forwarded_chunk = 32 << 10;
// A chain fills no link from two sides, but its last rank begins a chunk later for each rank between. Four hosts at 100
// Mbit/s: 4 MiB took 375 instead of 446 ms, 1 MiB 106 instead of 120, 256 KiB 39 instead of 36.
constexpr std::int64_t shortest_chain = 8;  // chunks for each rank between

std::int64_t divided_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

// Returns the length of a chunk in elements: the largest power of two within `wanted_bytes` and a slot, or one block.
std::int64_t chunk_elements(std::int64_t wanted_bytes, std::int64_t slot_bytes, std::int64_t element_bytes) {
  const std::int64_t bytes = std::min(wanted_bytes, slot_bytes);
  return static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::max(bytes / element_bytes, block_unit))));
}

// The same where every chunk is a message of its own: as few chunks as possible, all of about the same length, of which
// this is the most that one may have.
std::int64_t most_in_chunk(const Operation& operation, std::int64_t wanted_bytes, std::int64_t slot_bytes) {
  const std::int64_t wire = operation.encoded ? encoded_bytes(operation.header.codec, operation.header.type, block_unit)
                                              : block_unit * operation.element_bytes;
  const std::int64_t in_slot = std::max<std::int64_t>(slot_bytes / wire, 1) * block_unit;
  const std::int64_t limit = std::min(wanted_bytes, most_encoded_chunk);
  return std::min(chunk_elements(limit, limit, operation.element_bytes), in_slot);
}

bool is_short_for(std::int64_t bytes, const Exchange& exchange) {
  return bytes < short_bytes && exchange.table.in_memory();
}

// `in_message`: of a contribution, in one message; `messages`: that a host sends in one step.
bool pays_by_host(std::int64_t bytes, bool raw, std::size_t in_message, std::int64_t messages) {
  const bool in_one_step =
      raw && bytes <= static_cast<std::int64_t>(in_message) && bytes * messages <= most_in_one_step;
  return bytes >= shortest_by_host && !in_one_step;
}

bool goes_by_host(const Reduction& reduction, std::int64_t bytes, const Exchange& exchange) {
  if (exchange.hosts == nullptr || !exchange.hosts->takes(reduction, {})) return false;
  if (reduction.algorithm == ReduceAlgorithm::by_host) return reduction.elements > 0;
  return reduction.algorithm == ReduceAlgorithm::automatic &&
         pays_by_host(bytes, reduction.codec == Codec::raw, exchange.most_line_bytes,
                      exchange.hosts->messages_from_host());
}

}  // namespace

std::size_t in_message_bytes(int ranks, bool is_pair_over_mpi) {
  if (is_pair_over_mpi) return message_bytes - sizeof(Header);
  return std::clamp(std::bit_floor(8 * most_in_message / index(ranks)), least_in_message, most_in_message);
}

Choice choose_path(const Exchange& exchange, const Reduction& reduction, std::int64_t bytes) {
  const bool raw = reduction.codec == Codec::raw;
  if (goes_by_host(reduction, bytes, exchange)) {
    return {raw && exchange.relay->takes(bytes) ? Path::relayed_by_host : Path::by_host, ReduceAlgorithm::by_host};
  }
  ReduceAlgorithm algorithm = reduction.algorithm;
  if (algorithm == ReduceAlgorithm::automatic) algorithm = exchange.table.rule(bytes, !raw).algorithm;
  if (algorithm == ReduceAlgorithm::by_host) algorithm = ReduceAlgorithm::two_shot;
  const bool fits = bytes <= static_cast<std::int64_t>(exchange.most_line_bytes);
  if (!raw || !fits || algorithm == ReduceAlgorithm::two_shot) return {Path::phases, algorithm};
  if (exchange.relay == nullptr) return {Path::in_lines, algorithm};
  return {exchange.relay->takes_by_rank(bytes) ? Path::relayed_by_rank : Path::phases, algorithm};
}

ReduceAlgorithm predicted_algorithm(std::span<const int> hosts, std::int64_t bytes) {
  const auto ranks = static_cast<int>(hosts.size());
  std::map<int, std::int64_t> here;
  for (const int host : hosts) ++here[host];
  std::int64_t messages = 0;
  for (const auto& [unused, count] : here) messages = std::max(messages, count * (ranks - count));
  const bool shares_hosts = here.size() > 1 && here.size() < hosts.size();
  if (shares_hosts && pays_by_host(bytes, true, in_message_bytes(ranks, false), messages)) {
    return ReduceAlgorithm::by_host;
  }
  const ReduceTables tables = built_in_reduce_tables();
  return table_for(tables, here.size() == 1 ? ReducePlace::shared_memory : ReducePlace::network, ranks)
      .rule(bytes, false)
      .algorithm;
}

PredictedBroadcast predicted_broadcast(std::span<const int> hosts, std::int64_t bytes) {
  std::map<int, std::int64_t> here;
  for (const int host : hosts) ++here[host];
  const std::int64_t elsewhere = std::ssize(hosts) - (hosts.empty() ? 0 : here[hosts.front()]);
  const bool apart = here.size() == hosts.size();
  const bool passed_on =
      apart ? elsewhere > 1 && bytes >= shortest_forwarded : bytes * elsewhere > most_sent_to_each_rank;
  if (!passed_on) return {};
  const std::int64_t lanes = std::ranges::min_element(here, {}, [](const auto& host) { return host.second; })->second;
  const auto count = static_cast<int>(here.size());
  if (!goes_in_chain(count, bytes / lanes)) return {chunks_of_part, false};
  // More chunks change the time little, and take long to simulate.
  return {std::min(bytes / lanes / longest_forwarded_chunk, 2 * shortest_chain * (count - 2)), true};
}

Path choose_path(const Exchange& exchange, const Reduction& reduction, std::span<const std::int64_t> elements) {
  const bool any = reduction.algorithm == ReduceAlgorithm::automatic || reduction.algorithm == ReduceAlgorithm::by_host;
  if (!any || exchange.hosts == nullptr || !exchange.hosts->takes(reduction, elements)) return Path::phases;
  const std::int64_t bytes = exchange.hosts->most_sent(elements, false) * bytes_of(reduction.type);
  return bytes > most_sent_to_each_rank ? Path::by_host : Path::phases;
}

Path choose_path(const Exchange& exchange, std::span<const std::int64_t> bytes) {
  if (exchange.hosts != nullptr) {
    return exchange.hosts->most_sent(bytes, true) > most_sent_to_each_rank ? Path::by_host : Path::phases;
  }
  const std::int64_t all = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  if (!exchange.apart || exchange.size < 3 || all < shortest_forwarded) return Path::phases;
  const auto longest = static_cast<double>(*std::ranges::max_element(bytes));
  const double share = static_cast<double>(exchange.size - 1) / exchange.size;
  const double least = std::max(longest, static_cast<double>(all) * share);
  return longest * (exchange.size - 1) > least_gain * least ? Path::forwarded : Path::phases;
}

std::int64_t forwarded_chunk(int ranks, std::int64_t bytes) {
  const std::int64_t part = std::max<std::int64_t>(bytes / (ranks - 1) / chunks_of_part, 1);
  return std::clamp(static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(part))),
                    shortest_forwarded_chunk, longest_forwarded_chunk);
}

bool goes_in_chain(int ranks, std::int64_t bytes) {
  return ranks > 2 && bytes >= shortest_chain * (ranks - 2) * longest_forwarded_chunk;
}

// Received data is read once, so if non-temporal stores are best for long messages, they are best for all but the
// shortest.
StoreKind stores_for(std::int64_t bytes, const Exchange& exchange) {
  const bool streams = tuning().rules.back().stores == StoreKind::nontemporal;
  return streams && !is_short_for(bytes, exchange) ? StoreKind::nontemporal : tuning().rule(bytes).stores;
}

// Few chunks are best, if two are under way.
void set_chunk(Operation& operation, const Exchange& exchange, std::int64_t bytes, std::int64_t chunk_bytes) {
  constexpr std::int64_t kib = 1 << 10;
  const SizeRule& rule = tuning().rule(bytes);
  const bool is_short = is_short_for(bytes, exchange);
  operation.stores = stores_for(bytes, exchange);
  const std::int64_t usual = is_short ? rule.chunk_bytes : bytes < 512 * kib ? 64 * kib : 256 * kib;
  const std::int64_t wanted = chunk_bytes != 0 ? chunk_bytes : usual;
  operation.chunk = exchange.is_pair_over_mpi ? most_in_chunk(operation, wanted, exchange.slot_bytes)
                                              : chunk_elements(wanted, exchange.slot_bytes, operation.element_bytes);
  // All limits of different lengths have different logarithms, because only that of a slot is not a power of two.
  operation.header.log2_chunk =
      static_cast<std::uint8_t>(std::bit_width(static_cast<std::uint64_t>(operation.chunk) - 1));
  if (exchange.is_pair_over_mpi) {
    const std::int64_t blocks =
        std::max<std::int64_t>(divided_up(divided_up(bytes, operation.element_bytes), block_unit), 1);
    operation.chunk = divided_up(blocks, divided_up(blocks * block_unit, operation.chunk)) * block_unit;
  }
  const std::int64_t result_bytes = operation.result_bytes();
  operation.streams = result_bytes >= 4096 * kib && result_bytes >= 16384 * kib / exchange.size;
}

std::int64_t phase_chunk(const Exchange& exchange, std::int64_t bytes) {
  if (bytes < short_bytes || !exchange.table.in_memory()) return 0;
  return exchange.table.rule(bytes * exchange.size, false).chunk_bytes;
}

std::int64_t table_chunk(const ReduceRule& rule, std::int64_t bytes_to_each) {
  return bytes_to_each >= short_bytes ? rule.chunk_bytes : 0;
}

}  // namespace onehop::collectives::detail
