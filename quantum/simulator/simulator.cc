#include "onehop/quantum/simulator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <numeric>
#include <string>

#include "onehop/error.h"
#include "quantum/circuit/random.h"
#include "quantum/simulator/final_measurements.h"
#include "quantum/simulator/plan_cache.h"
#include "quantum/state/sampling.h"
#include "quantum/state/sorted_order.h"
#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {
namespace {

constexpr std::int64_t max_shots = std::int64_t{1} << 31;

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
    if (words.size() != values_.size()) {
      throw BadInput("the checkpoint has another number of shots or classical bits: expected " +
                     std::to_string(values_.size()) + " words of outcomes, found " + std::to_string(words.size()));
    }
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
  // `placement`: that of the circuit without its final measurements; nullptr: it is found or made.
  Simulation(const Circuit& circuit, const Group& group, const SimulationOptions& options,
             std::shared_ptr<const Placement> placement)
      : circuit_(circuit),
        options_(options),
        split_(split_final_measurements(circuit)),
        outcome_bits_(circuit.clbits),
        placement_(std::move(placement)),
        shots_(circuit.clbits > 0 ? circuit.clbits : circuit.qubits, options.shots) {
    if (circuit.clbits == 0) {  // all qubits are measured
      outcome_bits_ = circuit.qubits;
      split_.last.clear();
      for (int qubit = 0; qubit < circuit.qubits; ++qubit) split_.last.emplace_back(qubit, qubit);
    }
    const int ranks = usable_ranks(split_.body, group.size());
    if (!std::has_single_bit(static_cast<unsigned>(group.size()))) {
      throw BadInput("expected a number of ranks that is a power of two, found " + std::to_string(group.size()) +
                     "; take " + std::to_string(ranks) + " or " + std::to_string(2 * ranks));
    }
    // The hosts of the whole group, so that all parts of it place the circuit alike.
    const int per_host = ranks == group.size() ? -1 : ranks_per_host(group);
    const Group part = ranks == group.size() ? group : group.split(group.rank() / ranks, group.rank() % ranks);
    result_.ranks = ranks;
    result_.state = std::make_unique<State>(part, circuit.qubits, options.precision, options.state);
    if (per_host >= 0) result_.state->set_ranks_per_host(per_host);
    if (placement_ == nullptr) {
      compiled_ = options.resume != nullptr ? compile_cached(split_.body, ranks, placement_options(), false)
                                            : compile_cached(std::move(split_.body), ranks, placement_options());
      placement_ = placement_of(compiled_);
    }
    for (const Stage& stage : placement_->stages) operations_ += static_cast<std::int64_t>(stage.operations.size());
  }

  SimulationResult run() {
    const double begin = base::steady_seconds();
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
      run_branch(std::move(branch), *placement_, nullptr);
      ++result_.runs;
    }
    timed(ProfileEntry::Kind::sampling, [&] { result_.outcomes = shots_.outcomes(outcome_bits_, options_.shots); });
    const StateCounters& counters = result_.state->counters();
    result_.exchanges = counters.exchanges;
    std::array<double, 2> bytes{static_cast<double>(counters.bytes_sent),
                                static_cast<double>(counters.bytes_between_hosts)};
    sum_over_ranks(result_.state->group(), std::span<double>(bytes));
    result_.bytes_moved = static_cast<std::int64_t>(bytes[0]);
    result_.bytes_between_hosts = static_cast<std::int64_t>(bytes[1]);
    result_.seconds = base::steady_seconds() - begin;
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
    how.search_seconds = options_.search_seconds;
    how.ranks_per_host = result_.state->ranks_per_host();
    return how;
  }

  [[nodiscard]] Profile* profile() { return options_.profile ? &profile_ : nullptr; }

  template <typename Body>
  void timed(ProfileEntry::Kind kind, const Body& body) {
    if (!options_.profile) return body();
    profile_.timed(kind, -1, body);
  }

  // Checks a checkpoint from any source: every index in it must be in range.
  void check(const CheckpointState& checkpoint) const {
    if (checkpoint.waiting.empty() || checkpoint.expectations.size() != result_.expectations.size() ||
        checkpoint.done.size() != split_.body.operations.size() ||
        checkpoint.clbits.size() !=
            static_cast<std::size_t>(circuit_.clbits) + static_cast<std::size_t>(circuit_.hidden_clbits)) {
      throw BadInput("the checkpoint belongs to another circuit or to other observables");
    }
    const auto runs = static_cast<std::uint64_t>(std::max<std::int64_t>(options_.shots, 1));
    std::vector<bool> waits(runs, false);
    for (const Branch& branch : checkpoint.waiting) {
      if (branch.shots.empty()) throw BadInput("the checkpoint has an unfinished run without shots");
      for (const std::uint64_t shot : branch.shots) {
        if (shot >= runs || waits[shot]) {
          throw BadInput("the checkpoint names shot " + std::to_string(shot) + (shot < runs ? " twice" : "") +
                         "; expected each from 0 to " + std::to_string(runs - 1) + " once at most");
        }
        waits[shot] = true;
      }
    }
    if (checkpoint.events > checkpoint.waiting.back().record.size() || checkpoint.runs < 0) {
      throw BadInput("the checkpoint counts " + std::to_string(checkpoint.events) + " outcomes and " +
                     std::to_string(checkpoint.runs) + " finished runs; expected at most " +
                     std::to_string(checkpoint.waiting.back().record.size()) + " outcomes and at least 0 runs");
    }
  }

  // Finishes the run that was in progress; the other runs follow as usual.
  void resume(const CheckpointState& checkpoint) {
    check(checkpoint);
    shots_.set_words(checkpoint.outcomes);
    result_.expectations = checkpoint.expectations;
    result_.runs = checkpoint.runs;
    open_ = checkpoint.waiting;
    Branch branch = std::move(open_.back());
    open_.pop_back();
    PlacementOptions how = placement_options();
    how.bits = checkpoint.bits;
    how.done = checkpoint.done;
    const Placement rest = place(split_.body, result_.ranks, how);
    result_.state->set_layout(checkpoint.bits, 0);
    options_.restore(*result_.state);
    run_branch(std::move(branch), rest, &checkpoint);
    ++result_.runs;
  }

  // Draws an outcome for each shot of a branch and returns the more frequent one. Shots with the other outcome wait as
  // a new branch.
  int draw(Branch& branch, std::size_t event, double one) {
    if (event < branch.record.size()) return branch.record[event] ? 1 : 0;
    Branch other{branch.record, {}};
    std::vector<std::uint64_t> ones;
    std::vector<std::uint64_t> zeros;
    for (const std::uint64_t shot : branch.shots) {
      (detail::uniform(options_.seed, shot, event) < one ? ones : zeros).push_back(shot);
    }
    const bool follow_one = ones.size() > zeros.size();
    branch.shots = std::move(follow_one ? ones : zeros);
    other.shots = std::move(follow_one ? zeros : ones);
    branch.record.push_back(follow_one);
    other.record.push_back(!follow_one);
    if (!other.shots.empty()) open_.push_back(std::move(other));
    return follow_one ? 1 : 0;
  }

  void run_branch(Branch branch, const Placement& placement, const CheckpointState* from) {
    std::size_t event = from != nullptr ? from->events : 0;
    Executor executor(
        *result_.state, placement, circuit_.clbits + circuit_.hidden_clbits,
        [&](int, int, double one) { return draw(branch, event++, one); }, profile());
    if (from != nullptr) {
      executor.clbits() = from->clbits;
    } else if (!options_.due && compiled_ != nullptr) {
      executor.use_compiled(*compiled_);
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
    CheckpointState checkpoint;
    checkpoint.bits.assign(result_.state->bits().begin(), result_.state->bits().end());
    checkpoint.done = executor.done();
    checkpoint.clbits = executor.clbits();
    checkpoint.events = event;
    checkpoint.waiting = open_;
    checkpoint.waiting.push_back(branch);
    checkpoint.outcomes = shots_.words();
    checkpoint.expectations = result_.expectations;
    checkpoint.runs = result_.runs;
    options_.keep(*result_.state, checkpoint);
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
    const int threads = result_.state->engine().threads;
    base::parallel_for(threads, values.size(), 4096, [&](std::uint64_t begin, std::uint64_t end) {
      for (const auto& [bit, qubit] : split_.last) {
        if (bit >= outcome_bits_) continue;
        const auto place = std::lower_bound(qubits.begin(), qubits.end(), qubit) - qubits.begin();
        for (std::uint64_t i = begin; i < end; ++i) shots_.set(branch.shots[i], bit, (values[i] >> place & 1U) != 0);
      }
    });
  }

  const Circuit& circuit_;
  const SimulationOptions& options_;
  SplitCircuit split_;
  int outcome_bits_;  // the bits of a shot
  std::shared_ptr<CompiledCircuit> compiled_;
  std::shared_ptr<const Placement> placement_;
  std::int64_t operations_ = 0;
  Shots shots_;
  std::vector<Branch> open_;
  double weight_ = 1;
  SimulationResult result_;
  Profile profile_;
};

}  // namespace

std::shared_ptr<const Placement> place_simulation(const Circuit& circuit, int ranks, const PlacementOptions& options) {
  return placement_of(compile_cached(split_final_measurements(circuit).body, ranks, options));
}

static void check_options(const Circuit& circuit, const SimulationOptions& options) {
  if (options.shots < 0 || options.shots > max_shots) {
    throw BadInput("expected 0 to 2^31 shots, found " + std::to_string(options.shots));
  }
  for (const PauliSum& sum : options.observables) {
    if (sum.qubits() > circuit.qubits) {
      throw BadInput("expected observables on qubits 0 to " + std::to_string(circuit.qubits - 1) + ", found qubit " +
                     std::to_string(sum.qubits() - 1));
    }
  }
}

SimulationResult simulate(const Circuit& circuit, const Group& group, const SimulationOptions& options) {
  circuit.validate();
  circuit.require_bound();
  check_options(circuit, options);
  return Simulation(circuit, group, options, nullptr).run();
}

SimulationResult simulate_placed(const Circuit& circuit, const Group& group, const SimulationOptions& options,
                                 std::shared_ptr<const Placement> placement) {
  check_options(circuit, options);
  return Simulation(circuit, group, options, std::move(placement)).run();
}

std::vector<bool> run(State& state, const Circuit& circuit, std::uint64_t seed) {
  circuit.require_bound();
  if (circuit.qubits != state.qubits()) {
    throw BadInput("the circuit has " + base::counted(circuit.qubits, "qubit") + ", the state " +
                   std::to_string(state.qubits()));
  }
  PlacementOptions options;
  options.bytes_per_amplitude = bytes_per_amplitude(state.precision());
  options.bits.assign(state.bits().begin(), state.bits().end());
  options.ranks_per_host = state.ranks_per_host();
  const auto plan = compile_cached(circuit, state.group().size(), options, true);
  std::uint64_t event = 0;
  Executor executor(state, plan->placement(), circuit.clbits + circuit.hidden_clbits,
                    [&](int, int, double one) { return detail::uniform(seed, 0, event++) < one ? 1 : 0; });
  executor.use_compiled(*plan);
  while (executor.step()) {
  }
  std::vector<bool> clbits = executor.clbits();
  clbits.resize(static_cast<std::size_t>(circuit.clbits));
  return clbits;
}

std::vector<std::uint64_t> sample(const State& state, std::span<const int> qubits, std::int64_t shots,
                                  std::uint64_t seed) {
  if (qubits.size() > 64) throw BadInput("sample: expected at most 64 qubits, found " + std::to_string(qubits.size()));
  if (shots < 0 || shots > max_shots) {
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
