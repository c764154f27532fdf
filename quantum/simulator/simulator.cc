#include "onehop/quantum/simulator.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <map>
#include <numeric>
#include <string>

#include "onehop/error.h"
#include "quantum/circuit/random.h"
#include "quantum/engine/engine_threads.h"
#include "quantum/simulator/plan_cache.h"
#include "quantum/state/sampling.h"
#include "quantum/state/sorted_order.h"

namespace onehop::quantum {
namespace {

constexpr std::int64_t most_shots = std::int64_t{1} << 31;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// A circuit without the measurements that nothing follows; those are made by sampling.
struct Split {
  Circuit inside;
  std::vector<std::pair<int, int>> last;  // (classical bit, qubit)
};

Split split(const Circuit& circuit) {
  Split result{circuit, {}};
  const auto bits = static_cast<std::size_t>(circuit.clbits + circuit.hidden_clbits);
  std::vector<bool> used(static_cast<std::size_t>(circuit.qubits), false);  // by what follows
  std::vector<bool> bit_used(bits, false);
  for (std::size_t i = circuit.operations.size(); i-- > 0;) {
    const Operation& operation = circuit.operations[i];
    Operation& kept = result.inside.operations[i];
    if (operation.kind == OperationKind::barrier) continue;
    const bool plain = operation.kind == OperationKind::measure && operation.condition.clbits.empty();
    if (plain) {
      kept.targets.clear();
      kept.clbits.clear();
      for (std::size_t t = operation.targets.size(); t-- > 0;) {
        const int qubit = operation.targets[t];
        const int bit = operation.clbits[t];
        if (used[static_cast<std::size_t>(qubit)] || bit_used[static_cast<std::size_t>(bit)]) {
          kept.targets.insert(kept.targets.begin(), qubit);
          kept.clbits.insert(kept.clbits.begin(), bit);
          used[static_cast<std::size_t>(qubit)] = true;
        } else {
          result.last.emplace_back(bit, qubit);
        }
        bit_used[static_cast<std::size_t>(bit)] = true;
      }
      if (kept.targets.empty()) kept.kind = OperationKind::barrier;
      continue;
    }
    for (const int qubit : operation.targets) used[static_cast<std::size_t>(qubit)] = true;
    for (const int qubit : operation.controls) used[static_cast<std::size_t>(qubit)] = true;
    for (const int bit : operation.clbits) bit_used[static_cast<std::size_t>(bit)] = true;
    for (const int bit : operation.condition.clbits) bit_used[static_cast<std::size_t>(bit)] = true;
  }
  return result;
}

class Shots {
 public:
  Shots(int clbits, std::int64_t shots)
      : words_(static_cast<std::size_t>(clbits + 63) / 64), values_(static_cast<std::size_t>(shots) * words_) {}

  void set(std::uint64_t shot, int bit, bool value) {
    std::uint64_t& word = values_[shot * words_ + static_cast<std::size_t>(bit) / 64];
    const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
    word = value ? word | mask : word & ~mask;
  }

  [[nodiscard]] const std::vector<std::uint64_t>& words() const noexcept { return values_; }

  void set_words(const std::vector<std::uint64_t>& words) {
    if (words.size() != values_.size()) throw BadInput("the standing is of another number of shots or classical bits");
    values_ = words;
  }

  [[nodiscard]] Outcomes outcomes(int clbits, std::int64_t shots) const {
    Outcomes result;
    result.clbits = clbits;
    std::vector<std::uint32_t> order(static_cast<std::size_t>(shots));
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    const auto less = [&](std::uint32_t a, std::uint32_t b) {
      for (std::size_t w = words_; w-- > 0;) {
        if (values_[a * words_ + w] != values_[b * words_ + w])
          return values_[a * words_ + w] < values_[b * words_ + w];
      }
      return false;
    };
    if (words_ == 1) {  // the usual case
      order = sorted_order(values_);
    } else {
      std::sort(order.begin(), order.end(), less);
    }
    result.of_shot.resize(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || less(order[i - 1], order[i])) {
        const auto first = values_.begin() + static_cast<std::ptrdiff_t>(order[i] * words_);
        result.values.emplace_back(first, first + static_cast<std::ptrdiff_t>(words_));
        result.counts.push_back(0);
      }
      ++result.counts.back();
      result.of_shot[order[i]] = static_cast<std::uint32_t>(result.values.size() - 1);
    }
    return result;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> values_;
};

class Simulation {
 public:
  Simulation(const Circuit& circuit, const Group& group, const SimulationOptions& options)
      : circuit_(circuit), options_(options), split_(split(circuit)), shots_(circuit.clbits, options.shots) {
    const int ranks = usable_ranks(split_.inside, group.size());
    if (!std::has_single_bit(static_cast<unsigned>(group.size()))) {
      throw BadInput("a state vector is split over a power of two of ranks, found " + std::to_string(group.size()) +
                     "; take " + std::to_string(ranks) + " or " + std::to_string(2 * ranks));
    }
    const Group part = ranks == group.size() ? group : group.split(group.rank() / ranks, group.rank() % ranks);
    planned_ = options.resume != nullptr ? planned(split_.inside, ranks, part.rank(), placement_options(), false)
                                         : planned(std::move(split_.inside), ranks, part.rank(), placement_options());
    result_.ranks = ranks;
    result_.state = std::make_unique<State>(part, circuit.qubits, options.precision, options.state);
    for (const Stage& stage : planned_->placement().stages)
      operations_ += static_cast<std::int64_t>(stage.operations.size());
  }

  SimulationResult run() {
    const double begin = now();
    profile_ = Profile();
    std::vector<std::uint64_t> all(static_cast<std::size_t>(options_.shots));
    std::iota(all.begin(), all.end(), std::uint64_t{0});
    // Without shots a circuit with measurements inside runs once, as shot 0 would.
    if (all.empty()) all.push_back(0);
    weight_ = 1.0 / static_cast<double>(all.size());
    result_.expectations.assign(options_.observables.size(), 0);
    open_.push_back({{}, std::move(all)});
    if (options_.resume != nullptr) resume(*options_.resume);
    while (!open_.empty()) {
      Branch branch = std::move(open_.back());
      open_.pop_back();
      profile_.set_run(static_cast<int>(result_.runs));
      run_branch(std::move(branch), planned_->placement(), nullptr);
      ++result_.runs;
    }
    timed(ProfileEntry::Kind::sampling, [&] { result_.outcomes = shots_.outcomes(circuit_.clbits, options_.shots); });
    const StateCounters& counters = result_.state->counters();
    result_.exchanges = counters.exchanges;
    double bytes = static_cast<double>(counters.bytes_sent);
    sum_over_ranks(result_.state->group(), std::span(&bytes, 1));
    result_.bytes_moved = static_cast<std::int64_t>(bytes);
    result_.seconds = now() - begin;
    if (options_.profile) {
      result_.profile = profile_.entries();
      result_.pass_seconds = result_.state->pass_seconds();
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] PlacementOptions placement_options() const {
    PlacementOptions how;
    how.bytes_per_amplitude = bytes_per_amplitude(options_.precision);
    how.effort = options_.effort;
    return how;
  }

  [[nodiscard]] Profile* profile() { return options_.profile ? &profile_ : nullptr; }

  template <typename What>
  void timed(ProfileEntry::Kind kind, const What& what) {
    if (!options_.profile) return what();
    profile_.timed(kind, -1, what);
  }

  // Whatever it came from: no index in it may lie outside what it is used for.
  void check(const Standing& standing) const {
    if (standing.waiting.empty() || standing.expectations.size() != result_.expectations.size() ||
        standing.done.size() != split_.inside.operations.size() ||
        standing.clbits.size() != static_cast<std::size_t>(circuit_.clbits + circuit_.hidden_clbits)) {
      throw BadInput("the standing is of another circuit or of other observables");
    }
    const auto runs = static_cast<std::uint64_t>(std::max<std::int64_t>(options_.shots, 1));
    std::vector<bool> waits(runs, false);
    for (const Branch& branch : standing.waiting) {
      if (branch.shots.empty()) throw BadInput("the standing has a run to be made for no shots");
      for (const std::uint64_t shot : branch.shots) {
        if (shot >= runs || waits[shot]) {
          throw BadInput("the standing names shot " + std::to_string(shot) + (shot < runs ? " twice" : "") +
                         "; expected each from 0 to " + std::to_string(runs - 1) + " once at most");
        }
        waits[shot] = true;
      }
    }
    if (standing.events > standing.waiting.back().history.size() || standing.runs < 0) {
      throw BadInput("the standing counts " + std::to_string(standing.events) + " outcomes and " +
                     std::to_string(standing.runs) + " runs, which its runs do not have");
    }
  }

  // Does the rest of the run that was under way; the others follow as always.
  void resume(const Standing& standing) {
    check(standing);
    shots_.set_words(standing.outcomes);
    result_.expectations = standing.expectations;
    result_.runs = standing.runs;
    open_ = standing.waiting;
    Branch branch = std::move(open_.back());
    open_.pop_back();
    PlacementOptions how = placement_options();
    how.bits = standing.bits;
    how.done = standing.done;
    const Placement rest = place(split_.inside, result_.ranks, how);
    result_.state->set_layout(standing.bits, 0);
    options_.restore(*result_.state);
    run_branch(std::move(branch), rest, &standing);
    ++result_.runs;
  }

  // The outcome for this branch; shots that have another one wait as a branch of their own.
  int draw(Branch& branch, std::size_t event, double one) {
    if (event < branch.history.size()) return branch.history[event] ? 1 : 0;
    Branch other{branch.history, {}};
    std::vector<std::uint64_t> ones;
    std::vector<std::uint64_t> zeros;
    for (const std::uint64_t shot : branch.shots) {
      (detail::uniform(options_.seed, shot, event) < one ? ones : zeros).push_back(shot);
    }
    const bool follow_one = ones.size() > zeros.size();
    branch.shots = std::move(follow_one ? ones : zeros);
    other.shots = std::move(follow_one ? zeros : ones);
    branch.history.push_back(follow_one);
    other.history.push_back(!follow_one);
    if (!other.shots.empty()) open_.push_back(std::move(other));
    return follow_one ? 1 : 0;
  }

  void run_branch(Branch branch, const Placement& placement, const Standing* from) {
    std::size_t event = from != nullptr ? from->events : 0;
    Executor executor(
        *result_.state, placement, circuit_.clbits + circuit_.hidden_clbits,
        [&](int, int, double one) { return draw(branch, event++, one); }, profile());
    if (from != nullptr) {
      executor.clbits() = from->clbits;
    } else if (!options_.due) {
      executor.remember_in(*planned_);
    }
    do {
      if (options_.progress) {
        options_.progress({executor.operations_done(), operations_, result_.runs, options_.shots - open_shots(branch)});
      }
      if (!executor.finished() && options_.due && options_.due()) keep(executor, branch, event);
    } while (executor.step());
    result_.engine.passes += executor.counters().passes;
    result_.engine.operations += executor.counters().operations;
    result_.engine.seconds += executor.counters().seconds;
    if (options_.shots > 0) timed(ProfileEntry::Kind::sampling, [&] { note(branch, executor.clbits()); });
    std::vector<std::complex<double>> values;
    timed(ProfileEntry::Kind::expectations, [&] { values = expectations(*result_.state, options_.observables); });
    for (std::size_t i = 0; i < values.size(); ++i) {
      result_.expectations[i] += values[i] * (static_cast<double>(branch.shots.size()) * weight_);
    }
  }

  void keep(Executor& executor, const Branch& branch, std::size_t event) const {
    Standing standing;
    standing.bits.assign(result_.state->bits().begin(), result_.state->bits().end());
    standing.done = executor.done();
    standing.clbits = executor.clbits();
    standing.events = event;
    standing.waiting = open_;
    standing.waiting.push_back(branch);
    standing.outcomes = shots_.words();
    standing.expectations = result_.expectations;
    standing.runs = result_.runs;
    options_.keep(*result_.state, standing);
  }

  [[nodiscard]] std::int64_t open_shots(const Branch& branch) const {
    auto count = static_cast<std::int64_t>(branch.shots.size());
    for (const Branch& other : open_) count += static_cast<std::int64_t>(other.shots.size());
    return std::min(count, options_.shots);
  }

  void note(const Branch& branch, const std::vector<bool>& clbits) {
    for (const std::uint64_t shot : branch.shots) {
      for (int bit = 0; bit < circuit_.clbits; ++bit) {
        if (clbits[static_cast<std::size_t>(bit)]) shots_.set(shot, bit, true);
      }
    }
    std::vector<int> qubits;
    for (const auto& [bit, qubit] : split_.last) qubits.push_back(qubit);
    std::sort(qubits.begin(), qubits.end());
    qubits.erase(std::unique(qubits.begin(), qubits.end()), qubits.end());
    const auto values = quantum::sample(*result_.state, qubits, branch.shots, options_.seed);
    const int threads = thread_count(result_.state->engine().threads);
    parallel_for(threads, values.size(), 4096, [&](std::uint64_t begin, std::uint64_t end) {
      for (const auto& [bit, qubit] : split_.last) {
        if (bit >= circuit_.clbits) continue;
        const auto place = std::lower_bound(qubits.begin(), qubits.end(), qubit) - qubits.begin();
        for (std::uint64_t i = begin; i < end; ++i) shots_.set(branch.shots[i], bit, (values[i] >> place & 1U) != 0);
      }
    });
  }

  const Circuit& circuit_;
  const SimulationOptions& options_;
  Split split_;
  std::shared_ptr<PlannedCircuit> planned_;
  std::int64_t operations_ = 0;
  Shots shots_;
  std::vector<Branch> open_;
  double weight_ = 1;
  SimulationResult result_;
  Profile profile_;
};

}  // namespace

SimulationResult simulate(const Circuit& circuit, const Group& group, const SimulationOptions& options) {
  circuit.validate();
  if (options.shots < 0 || options.shots > most_shots) {
    throw BadInput("expected 0 to 2^31 shots, found " + std::to_string(options.shots));
  }
  for (const PauliSum& sum : options.observables) {
    if (sum.qubits() > circuit.qubits) {
      throw BadInput("an observable speaks of qubit " + std::to_string(sum.qubits() - 1) + ", but the circuit has " +
                     std::to_string(circuit.qubits) + " qubits");
    }
  }
  return Simulation(circuit, group, options).run();
}

std::vector<bool> run(State& state, const Circuit& circuit, std::uint64_t seed) {
  if (circuit.qubits != state.qubits()) {
    throw BadInput("the circuit has " + std::to_string(circuit.qubits) + " qubits, the state " +
                   std::to_string(state.qubits()));
  }
  PlacementOptions options;
  options.bytes_per_amplitude = bytes_per_amplitude(state.precision());
  options.bits.assign(state.bits().begin(), state.bits().end());
  const auto plan = planned(circuit, state.group().size(), state.group().rank(), options, true);
  std::uint64_t event = 0;
  Executor executor(state, plan->placement(), circuit.clbits + circuit.hidden_clbits,
                    [&](int, int, double one) { return detail::uniform(seed, 0, event++) < one ? 1 : 0; });
  executor.remember_in(*plan);
  while (executor.step()) {
  }
  std::vector<bool> clbits = executor.clbits();
  clbits.resize(static_cast<std::size_t>(circuit.clbits));
  return clbits;
}

std::vector<std::uint64_t> sample(const State& state, std::span<const int> qubits, std::int64_t shots,
                                  std::uint64_t seed) {
  if (qubits.size() > 64) throw BadInput("at most 64 qubits can be sampled at once");
  if (shots < 0 || shots > most_shots) {
    throw BadInput("expected 0 to 2^31 shots, found " + std::to_string(shots));
  }
  for (std::size_t i = 0; i < qubits.size(); ++i) {
    const std::string name = "qubit " + std::to_string(qubits[i]);
    if (qubits[i] < 0 || qubits[i] >= state.qubits()) {
      throw BadInput(name + " does not exist; the state has " + std::to_string(state.qubits()));
    }
    if (std::find(qubits.begin(), qubits.begin() + static_cast<std::ptrdiff_t>(i), qubits[i]) !=
        qubits.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw BadInput(name + " is named twice");
    }
  }
  std::vector<std::uint64_t> numbers(static_cast<std::size_t>(shots));
  std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
  return sample(state, qubits, numbers, seed);
}

}  // namespace onehop::quantum
