#include "onehop/quantum/placement.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>

#include "onehop/error.h"
#include "quantum/engine/big_tiles.h"
#include "quantum/placement/baselines.h"
#include "quantum/placement/swap_set.h"
#include "src/base/text.h"

namespace onehop::quantum {
namespace {

using detail::Dependencies;
using detail::SwapSet;

// With fewer local bits than this, the placement does not choose which of them take part in exchanges.
constexpr int enough_local_bits = 10;
// The approximate number of steps that a scheduler makes in a second.
constexpr double steps_per_second = 3e6;

// Rewrites the circuit's operations to act on wires. Sets `wires[q]` to the wire that is qubit q at the end.
std::vector<Operation> on_wires(Circuit circuit, std::vector<int>& wires) {
  wires.resize(static_cast<std::size_t>(circuit.qubits));
  std::iota(wires.begin(), wires.end(), 0);
  std::vector<Operation> operations = std::move(circuit.operations);
  for (Operation& operation : operations) {
    for (auto* list : {&operation.targets, &operation.controls}) {
      for (int& qubit : *list) qubit = wires[static_cast<std::size_t>(qubit)];
    }
    if (!detail::is_plain_swap(operation)) continue;
    // The targets are wires by now.
    for (int& wire : wires) {
      if (wire == operation.targets[0]) {
        wire = operation.targets[1];
      } else if (wire == operation.targets[1]) {
        wire = operation.targets[0];
      }
    }
  }
  return operations;
}

// Marks the operations that need no work when the circuit runs: barriers, uncontrolled swaps, and those done already.
std::vector<bool> absent_of(const std::vector<Operation>& operations, const std::vector<bool>& done) {
  std::vector<bool> absent(operations.size(), false);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    absent[i] = operations[i].kind == OperationKind::barrier || detail::is_plain_swap(operations[i]) ||
                (!done.empty() && done[i]);
  }
  return absent;
}

// Absorbs one-qubit gates and resets at the beginning of a wire into its first state, and marks them as absent.
void absorb(const std::vector<Operation>& operations, std::vector<bool>& absent,
            std::vector<std::array<Complex, 2>>& states) {
  std::vector<bool> fresh(states.size(), true);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Operation& operation = operations[i];
    if (absent[i]) continue;
    const auto is_fresh = [&](int wire) { return fresh[static_cast<std::size_t>(wire)]; };
    if (detail::is_independent(operation) &&
        std::all_of(operation.targets.begin(), operation.targets.end(), is_fresh)) {
      absent[i] = true;
      if (operation.kind == OperationKind::reset) {
        for (const int wire : operation.targets) states[static_cast<std::size_t>(wire)] = {1, 0};
        continue;
      }
      const std::vector<Complex> m = matrix_of(operation);
      auto& [zero, one] = states[static_cast<std::size_t>(operation.targets.front())];
      const Complex before = zero;
      zero = m[0] * before + m[1] * one;
      one = m[2] * before + m[3] * one;
      continue;
    }
    for (const int wire : operation.targets) fresh[static_cast<std::size_t>(wire)] = false;
    for (const int wire : operation.controls) fresh[static_cast<std::size_t>(wire)] = false;
  }
}

void check(const Circuit& circuit, int ranks, const PlacementOptions& options) {
  if (ranks < 1 || !std::has_single_bit(static_cast<unsigned>(ranks))) {
    const auto fits = std::bit_floor(static_cast<unsigned>(std::max(ranks, 1)));
    throw BadInput("expected a number of ranks that is a power of two, found " + std::to_string(ranks) + "; take " +
                   std::to_string(fits) + " or " + std::to_string(2 * fits));
  }
  const int local_bits = circuit.qubits - std::countr_zero(static_cast<unsigned>(ranks));
  if (const int needed = local_bits_needed(circuit); local_bits < needed) {
    const int most = circuit.qubits - needed;
    throw BadInput("expected " + std::to_string(needed) + " local qubits per rank or more, which an operation of the " +
                   "circuit needs, found " + std::to_string(std::max(local_bits, 0)) + " with " +
                   base::counted(circuit.qubits, "qubit") + " on " + base::counted(ranks, "rank") + "; take at most " +
                   std::to_string(most >= 0 ? 1 << most : 1) + " ranks");
  }
  if (options.ranks_per_host < 0 ||
      (options.ranks_per_host > 0 && !std::has_single_bit(static_cast<unsigned>(options.ranks_per_host)))) {
    throw BadInput("placement: expected a number of ranks per host that is a power of two, or 0, found " +
                   std::to_string(options.ranks_per_host));
  }
  if (!options.bits.empty() && options.bits.size() != static_cast<std::size_t>(circuit.qubits)) {
    throw BadInput("placement: expected a bit for each of " + base::counted(circuit.qubits, "wire") + ", found " +
                   std::to_string(options.bits.size()));
  }
  std::vector<int> sorted = options.bits;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int>(i)) {
      throw BadInput("placement: expected each bit from 0 to " + std::to_string(circuit.qubits - 1) + " once");
    }
  }
  if (!options.done.empty() && options.done.size() != circuit.operations.size()) {
    throw BadInput("placement: expected `done` for each of " + base::counted(circuit.operations.size(), "operation") +
                   ", found " + std::to_string(options.done.size()));
  }
}

// Assigns bits to wires. With `soonest_first`, the wires that are needed local first get the lowest bits of the rank's
// number, which stay inside a host; otherwise they get these bits in their own order. The four local wires that are
// needed local most often get the lowest bits, which take part in exchanges last.
std::vector<int> lay_out(const std::vector<bool>& remote, const Dependencies& dependencies, bool soonest_first) {
  std::vector<int> local;
  std::vector<int> far;
  std::vector<int> bits(remote.size());
  for (std::size_t wire = 0; wire < remote.size(); ++wire) {
    (remote[wire] ? far : local).push_back(static_cast<int>(wire));
  }
  if (soonest_first) {
    std::stable_sort(far.begin(), far.end(), [&](int a, int b) {
      const auto& needed_a = dependencies.needed_local[static_cast<std::size_t>(a)];
      const auto& needed_b = dependencies.needed_local[static_cast<std::size_t>(b)];
      if (needed_a.empty() || needed_b.empty()) return !needed_a.empty();
      return needed_a.front() < needed_b.front();
    });
  }
  int rank_bit = static_cast<int>(local.size());
  for (const int wire : far) bits[static_cast<std::size_t>(wire)] = rank_bit++;
  if (rank_bit > static_cast<int>(local.size()) && static_cast<int>(local.size()) >= enough_local_bits) {
    std::stable_sort(local.begin(), local.end(), [&](int a, int b) {
      return dependencies.needed_local[static_cast<std::size_t>(a)].size() >
             dependencies.needed_local[static_cast<std::size_t>(b)].size();
    });
    std::sort(local.begin() + 4, local.end());
  }
  for (std::size_t i = 0; i < local.size(); ++i) bits[static_cast<std::size_t>(local[i])] = static_cast<int>(i);
  return bits;
}

std::vector<bool> remote_of(const std::vector<int>& bits, int local_bits) {
  std::vector<bool> remote(bits.size());
  for (std::size_t wire = 0; wire < bits.size(); ++wire) remote[wire] = bits[wire] >= local_bits;
  return remote;
}

// The wires on the lowest bits, whose exchange would move parts of cache lines.
std::vector<bool> pinned_of(const std::vector<int>& bits, int local_bits, double bytes_per_amplitude) {
  if (local_bits < enough_local_bits) return {};
  const int low = bytes_per_amplitude >= 16 ? 3 : 4;
  std::vector<bool> pinned(bits.size(), false);
  for (std::size_t wire = 0; wire < bits.size(); ++wire) pinned[wire] = bits[wire] < low;
  return pinned;
}

// The wire that goes out for each wire that comes in. Wires that are needed again soon take the low bits of the rank's
// number, whose exchanges stay inside a host.
void pair_by_need(const detail::CircuitScheduler& scheduler, const std::vector<int>& bits, SwapSet& swaps) {
  std::stable_sort(swaps.in.begin(), swaps.in.end(),
                   [&](int a, int b) { return bits[static_cast<std::size_t>(a)] < bits[static_cast<std::size_t>(b)]; });
  std::vector<std::pair<unsigned, int>> needs;  // -1, for never, becomes the largest number
  for (const int wire : swaps.out) needs.emplace_back(static_cast<unsigned>(scheduler.next_need(wire)), wire);
  std::stable_sort(needs.begin(), needs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < needs.size(); ++i) swaps.out[i] = needs[i].second;
}

std::vector<Stage> stages_of(const Dependencies& dependencies, std::vector<int> bits, int local_bits,
                             const detail::ExchangeSequence& sequence, bool soonest_first) {
  detail::CircuitScheduler scheduler(dependencies, remote_of(bits, local_bits));
  std::vector<Stage> stages(1);
  stages[0].bits = bits;
  scheduler.run(&stages[0].operations);
  for (SwapSet swaps : sequence.exchanges) {
    if (soonest_first) pair_by_need(scheduler, bits, swaps);
    Stage& stage = stages.emplace_back();
    for (std::size_t i = 0; i < swaps.in.size(); ++i) {
      int& in = bits[static_cast<std::size_t>(swaps.in[i])];
      int& out = bits[static_cast<std::size_t>(swaps.out[i])];
      stage.swaps.emplace_back(out, in);
      std::swap(in, out);
    }
    stage.bits = bits;
    scheduler.exchange(swaps.in, swaps.out);
    scheduler.run(&stage.operations);
  }
  return stages;
}

}  // namespace

Placement place(Circuit circuit, int ranks, const PlacementOptions& options) {
  check(circuit, ranks, options);
  Placement result;
  result.qubits = circuit.qubits;
  result.ranks = ranks;
  const int rank_bits = std::countr_zero(static_cast<unsigned>(ranks));
  result.local_bits = circuit.qubits - rank_bits;
  result.bytes_per_amplitude = options.bytes_per_amplitude;
  result.baselines = detail::baselines_of(circuit, result.local_bits);
  const int qubits = circuit.qubits;
  const int clbits = circuit.clbits + circuit.hidden_clbits;
  result.operations = on_wires(std::move(circuit), result.wires);
  std::vector<bool> absent = absent_of(result.operations, options.done);
  if (options.bits.empty()) {
    result.first_state.assign(static_cast<std::size_t>(qubits), {1, 0});
    absorb(result.operations, absent, result.first_state);
  }
  const Dependencies dependencies = detail::dependencies_of(result.operations, qubits, clbits, std::move(absent));
  detail::SearchOptions search;
  search.budget = static_cast<std::int64_t>(options.search_seconds * steps_per_second);
  std::vector<bool> first_remote;
  result.first_bits = options.bits;
  if (options.bits.empty()) {
    first_remote = first_remote_wires(dependencies, qubits, rank_bits, search);
    result.first_bits = lay_out(first_remote, dependencies, false);
  }
  search.pinned = pinned_of(result.first_bits, result.local_bits, options.bytes_per_amplitude);
  const detail::CircuitScheduler scheduler(dependencies, remote_of(result.first_bits, result.local_bits));
  const detail::ExchangeSequence sequence = search_exchanges(scheduler, search);
  result.stages = stages_of(dependencies, result.first_bits, result.local_bits, sequence, false);
  if (!options.uses_hosts(ranks)) return result;
  // The same exchanges with other bits of the rank's number: taken if fewer bytes leave a host.
  Placement inside = result;
  if (options.bits.empty()) inside.first_bits = lay_out(first_remote, dependencies, true);
  inside.stages = stages_of(dependencies, inside.first_bits, inside.local_bits, sequence, true);
  const std::array<int, 1> host{options.ranks_per_host};
  return inside.bytes_by_level(host)[1] < result.bytes_by_level(host)[1] ? inside : result;
}

int local_bits_needed(const Circuit& circuit) {
  std::size_t needed = 1;
  for (const Operation& operation : circuit.operations) {
    if (!detail::is_plain_swap(operation)) needed = std::max(needed, detail::commutation_of(operation).local.size());
  }
  return static_cast<int>(needed);
}

int usable_ranks(const Circuit& circuit, int ranks) {
  const int most = std::clamp(circuit.qubits - local_bits_needed(circuit), 0, 30);
  return std::min(1 << most, static_cast<int>(std::bit_floor(static_cast<unsigned>(std::max(ranks, 1)))));
}

int Placement::exchanges() const noexcept {
  return static_cast<int>(std::count_if(stages.begin(), stages.end(), [](const Stage& s) { return !s.swaps.empty(); }));
}

double Placement::fraction_moved(const Stage& stage) noexcept { return detail::cost_of(stage.swaps.size()); }

double Placement::fraction_moved() const noexcept {
  double sum = 0;
  for (const Stage& stage : stages) sum += fraction_moved(stage);
  return sum;
}

std::int64_t Placement::bytes_per_rank(double fraction) const noexcept {
  return std::llround(fraction * std::ldexp(bytes_per_amplitude, local_bits));
}

std::int64_t Placement::bytes_per_rank() const noexcept { return bytes_per_rank(fraction_moved()); }

// With k bits of the rank's number in an exchange, a rank sends 2^-k of its amplitudes to every other combination of
// these bits. Half of the combinations up to a bit, 2^i of them for the bit number i of k, differ from its own in this
// bit and in none above it: the border that they cross is that of this bit.
std::vector<std::int64_t> Placement::bytes_by_level(std::span<const int> units) const {
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (units[i] < 1 || !std::has_single_bit(static_cast<unsigned>(units[i])) || (i > 0 && units[i] <= units[i - 1])) {
      throw BadInput("placement: expected units whose numbers of ranks are powers of two, in ascending order, found " +
                     std::to_string(units[i]));
    }
  }
  std::vector<std::int64_t> bytes(units.size() + 1, 0);
  for (const Stage& stage : stages) {
    std::vector<int> rank_bits;
    for (const auto& swap : stage.swaps) rank_bits.push_back(swap.second - local_bits);
    std::sort(rank_bits.begin(), rank_bits.end());
    const auto share = std::llround(std::ldexp(bytes_per_amplitude, local_bits - static_cast<int>(rank_bits.size())));
    for (std::size_t i = 0; i < rank_bits.size(); ++i) {
      std::size_t level = 0;
      while (level < units.size() && rank_bits[i] >= std::countr_zero(static_cast<unsigned>(units[level]))) ++level;
      bytes[level] += share << i;
    }
  }
  return bytes;
}

namespace {

// Calls `use` with the number of a stage and operations of a rank that its engine takes together: at most `most` of the
// stage, and none beyond a measurement or a reset.
template <typename Use>
void for_each_part(const Placement& placement, int rank, std::size_t most, const Use& use) {
  std::uint64_t flips = 0;
  for (std::size_t number = 0; number < placement.stages.size(); ++number) {
    const Stage& stage = placement.stages[number];
    std::vector<LocalOperation> local;
    for (std::size_t k = 0; k < stage.operations.size(); ++k) {
      const Operation& operation = placement.operations[static_cast<std::size_t>(stage.operations[k])];
      if (k % most == 0 || operation.kind == OperationKind::measure || operation.kind == OperationKind::reset) {
        use(number, local);
        local.clear();
      }
      if (auto one = localize(operation, stage.bits, placement.local_bits, rank, flips)) {
        local.push_back(std::move(*one));
      }
    }
    use(number, local);
  }
}

constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

}  // namespace

std::vector<std::vector<PassSummary>> Placement::groups(int rank, bool on_device) const {
  if (rank < 0 || rank >= ranks) {
    throw BadInput("placement: expected a rank below " + std::to_string(ranks) + ", found " + std::to_string(rank));
  }
  std::vector<std::vector<PassSummary>> groups(stages.size());
  for_each_part(*this, rank, most_together, [&](std::size_t stage, const std::vector<LocalOperation>& local) {
    std::ranges::move(summarize_passes(local_bits, local, static_cast<int>(bytes_per_amplitude), on_device),
                      std::back_inserter(groups[stage]));
  });
  return groups;
}

double Placement::passes() const {
  double sum = 0;
  for (const auto& stage : groups()) sum += static_cast<double>(stage.size());
  return sum;
}

int Placement::passes_on_disk(int tile_bits, int low_bits) const {
  std::size_t sum = 0;
  for_each_part(*this, 0, all, [&](std::size_t, const std::vector<LocalOperation>& local) {
    sum += make_big_passes(local, local_bits, tile_bits, low_bits).size();
  });
  return static_cast<int>(sum);
}

double Placement::passes_at_least() const {
  double sum = 0;
  for_each_part(*this, 0, all, [&](std::size_t, const std::vector<LocalOperation>& local) {
    sum += count_passes_at_least(local_bits, local, static_cast<int>(bytes_per_amplitude));
  });
  return sum;
}

}  // namespace onehop::quantum
