#include "quantum/simulator/circuit_cache.h"

#include <algorithm>
#include <list>

#include "onehop/quantum/simulator.h"
#include "quantum/simulator/fingerprint.h"
#include "quantum/state/precision.h"

namespace onehop::quantum {
namespace {

// The maximum number of cached circuits, and the maximum of their operations in total.
constexpr std::size_t max_circuits = 16;
constexpr std::size_t max_operations = std::size_t{1} << 16;

Key key_of(const Circuit& circuit, int ranks, const PlacementOptions& options) {
  Fingerprint print;
  print.add(ranks);
  print.add(options.bytes_per_amplitude);
  print.add(options.bits.size());
  print.add(options.bits);
  print.add(options.search_seconds);
  print.add(options.uses_hosts(ranks) ? options.ranks_per_host : 0);
  print.add(circuit);
  return print.key();
}

// An LRU cache of compiled circuits, most recently used first. It keeps the last ones itself, and finds the others as
// long as somebody else holds them.
class CircuitCache {
 public:
  std::shared_ptr<PlacedCircuit> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    auto known = look_up(key);
    if (known != nullptr) ++counters_.found;
    return known;
  }

  // Returns the circuit that the cache has by now: a thread that placed an equal one at the same time may be first.
  std::shared_ptr<PlacedCircuit> add(const Key& key, std::shared_ptr<PlacedCircuit> circuit) {
    const std::lock_guard lock(mutex_);
    ++counters_.placed;
    if (auto known = look_up(key)) return known;
    circuits_.push_front({key, circuit, circuit});
    trim();
    return circuit;
  }

  [[nodiscard]] CircuitCacheCounters counters() const {
    const std::lock_guard lock(mutex_);
    return counters_;
  }

 private:
  struct Entry {
    Key key;
    std::weak_ptr<PlacedCircuit> circuit;
    std::shared_ptr<PlacedCircuit> kept;  // null if the cache does not keep it
  };

  std::shared_ptr<PlacedCircuit> look_up(const Key& key) {
    const auto found =
        std::find_if(circuits_.begin(), circuits_.end(), [&](const Entry& entry) { return entry.key == key; });
    if (found == circuits_.end()) return nullptr;
    circuits_.splice(circuits_.begin(), circuits_, found);
    return found->circuit.lock();
  }

  // A circuit that is too long for the cache alone does not displace the others.
  void trim() {
    std::size_t operations = 0;
    std::size_t count = 0;
    for (Entry& entry : circuits_) {
      if (entry.kept == nullptr) continue;
      const std::size_t more = entry.kept->placement().operations.size();
      if (count == max_circuits || operations + more > max_operations) {
        entry.kept.reset();
      } else {
        ++count;
        operations += more;
      }
    }
    circuits_.remove_if([](const Entry& entry) { return entry.circuit.expired(); });
  }

  mutable std::mutex mutex_;
  std::list<Entry> circuits_;
  CircuitCacheCounters counters_;
};

CircuitCache& circuit_cache() {
  static CircuitCache one;
  return one;
}

std::shared_ptr<PlacedCircuit> insert(const Key& key, Placement placement) {
  return circuit_cache().add(key, std::make_shared<PlacedCircuit>(std::move(placement)));
}

}  // namespace

EngineCounters PlacedCircuit::Part::run(State& state) const {
  return with_type(state.precision(), [&]<typename T>() {
    return std::get<std::unique_ptr<EngineProgram<T>>>(program)->run({state.local<T>()}, state.engine().threads);
  });
}

std::shared_ptr<const PlacedCircuit::Part> PlacedCircuit::find(int rank, std::size_t stage, std::size_t begin,
                                                               std::uint64_t flips) const {
  const std::lock_guard lock(mutex_);
  for (const auto& part : parts_) {
    if (part->rank == rank && part->stage == stage && part->begin == begin && part->flips == flips) return part;
  }
  return nullptr;
}

std::shared_ptr<const PlacedCircuit::Part> PlacedCircuit::keep(Part part, std::vector<LocalOperation> operations,
                                                               const State& state) {
  with_type(state.precision(), [&]<typename T>() {
    part.program = std::make_unique<EngineProgram<T>>(state.local_bits(), std::move(operations));
  });
  auto kept = std::make_shared<const Part>(std::move(part));
  const std::lock_guard lock(mutex_);
  parts_.push_back(kept);
  return kept;
}

std::shared_ptr<PlacedCircuit> compile_cached(const Circuit& circuit, int ranks, const PlacementOptions& options,
                                              bool validate) {
  const Key key = key_of(circuit, ranks, options);
  if (auto known = circuit_cache().find(key)) return known;
  if (validate) circuit.validate();
  return insert(key, place(circuit, ranks, options));
}

std::shared_ptr<PlacedCircuit> compile_cached(Circuit&& circuit, int ranks, const PlacementOptions& options) {
  const Key key = key_of(circuit, ranks, options);
  if (auto known = circuit_cache().find(key)) return known;
  return insert(key, place(std::move(circuit), ranks, options));
}

std::shared_ptr<const Placement> placement_of(const std::shared_ptr<PlacedCircuit>& compiled) {
  return {compiled, &compiled->placement()};
}

std::shared_ptr<const Placement> find_or_place(const Circuit& circuit, int ranks, const PlacementOptions& options) {
  if (const auto known = circuit_cache().find(key_of(circuit, ranks, options))) return placement_of(known);
  return std::make_shared<const Placement>(place(circuit, ranks, options));
}

PlacementOptions placement_options(const State& state) {
  PlacementOptions options;
  options.bytes_per_amplitude = bytes_per_amplitude(state.precision());
  options.bits.assign(state.bits().begin(), state.bits().end());
  options.ranks_per_host = state.ranks_per_host();
  return options;
}

void apply_placed(State& state, const Placement& placement) {
  Executor executor(state, placement, 0, [](int, int, double) { return 0; });
  while (executor.step()) {
  }
}

CircuitCacheCounters circuit_cache_counters() { return circuit_cache().counters(); }

}  // namespace onehop::quantum
