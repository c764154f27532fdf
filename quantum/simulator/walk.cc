#include "quantum/simulator/walk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>

#include "onehop/error.h"
#include "quantum/circuit/random.h"
#include "quantum/engine/encoded_amplitudes.h"
#include "quantum/simulator/record_seed.h"
#include "quantum/state/sampling.h"
#include "src/base/clock.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {
namespace {

constexpr double never = 1e-14;  // an outcome with a smaller probability does not occur

}  // namespace

Circuit widest(const Program& program, bool mixed) {
  if (mixed) return on_rows_and_columns(program);
  Circuit circuit;
  circuit.qubits = program.circuit.qubits;
  for (const Operation& operation : program.circuit.operations) {
    if (operation.is_gate()) circuit.operations.push_back(operation);
    if (operation.kind != OperationKind::channel) continue;
    Operation& wide = circuit.operations.emplace_back();
    wide.kind = OperationKind::matrix;
    wide.targets = operation.targets;
    wide.values.assign(std::size_t{1} << 2 * operation.targets.size(), 1);
  }
  return circuit;
}

int index_of(std::span<const double> weights, double number) {
  double total = 0;
  for (const double weight : weights) total += std::max(weight, 0.0);
  const double wanted = number * total;
  double sum = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    sum += std::max(weights[k], 0.0);
    if (sum > wanted) return static_cast<int>(k);
  }
  return static_cast<int>(weights.size()) - 1;
}

Group part_for(const Circuit& circuit, const Group& whole, int& per_host, Precision precision) {
  int ranks = usable_ranks(circuit, whole.size());
  if (is_encoded(precision)) {  // a rank needs a block for each pair of ranks
    const int most = (circuit.qubits - EncodedAmplitudes::block_bits) / 2;
    ranks = std::min(ranks, 1 << std::clamp(most, 0, 30));
  }
  if (!std::has_single_bit(static_cast<unsigned>(whole.size()))) {
    throw BadInput("expected a number of ranks that is a power of two, found " + std::to_string(whole.size()) +
                   "; take " + std::to_string(ranks) + " or " + std::to_string(2 * ranks));
  }
  per_host = ranks == whole.size() ? -1 : ranks_per_host(whole);
  return ranks == whole.size() ? whole : whole.split(whole.rank() / ranks, whole.rank() % ranks);
}

void count_traffic(SimulationResult& result, const StateCounters& counters, const Group& group) {
  result.exchanges = counters.exchanges;
  std::array<double, 2> bytes{static_cast<double>(counters.bytes_sent),
                              static_cast<double>(counters.bytes_between_hosts)};
  sum_over_ranks(group, std::span<double>(bytes));
  result.bytes_moved = static_cast<std::int64_t>(bytes[0]);
  result.bytes_between_hosts = static_cast<std::int64_t>(bytes[1]);
}

Walk::Walk(const SplitProgram& split, const Group& group, const ProgramOptions& options, Style style, Shots& shots,
           std::shared_ptr<const Placement> placement, std::uint64_t first_event)
    : split_(split),
      options_(options),
      style_(style),
      trajectories_(options.trajectories > 0 ? options.trajectories : std::max<std::int64_t>(options.shots, 1)),
      placement_(std::move(placement)),
      shots_(shots),
      first_event_(first_event) {
  make_state(group);
  if (style_ == Style::circuit) place_circuit();
  Machine::Setup setup;
  setup.mixed = options.mixed;
  setup.search_seconds = options.search_seconds;
  setup.profile = profile();
  setup.whole = placement_;
  if (!options.due) setup.compiled = placed_.get();
  Machine::Calls calls;
  calls.choose = [this](std::span<const double> weights) { return choose(*present_, weights); };
  calls.save = [this](int save, std::vector<Complex> values) {
    made_->saved.push_back({save, machine_->clbits(), std::move(values)});
  };
  if (style_ == Style::circuit) calls.between = [this](Executor& executor) { between(executor, *present_); };
  machine_ = std::make_unique<Machine>(split.body, *state_, std::move(calls), std::move(setup));
}

void Walk::make_state(const Group& group) {
  const Circuit& circuit = split_.body.circuit;
  int per_host = -1;
  const Group part = part_for(style_ == Style::circuit ? circuit : widest(split_.body, options_.mixed), group, per_host,
                              options_.precision);
  result_.ranks = part.size();
  const int qubits = options_.mixed ? 2 * circuit.qubits : circuit.qubits;
  // Parts of a circuit may have too few amplitudes to be encoded.
  const bool tiny = is_encoded(options_.precision) && qubits < EncodedAmplitudes::block_bits;
  const Precision precision = tiny ? Precision::single_precision : options_.precision;
  state_ = std::make_unique<State>(part, qubits, precision, options_.state);
  if (per_host >= 0) state_->set_ranks_per_host(per_host);
}

void Walk::place_circuit() {
  if (placement_ == nullptr) {
    placed_ = compile_cached(split_.body.circuit, result_.ranks, placement_options(), false);
    placement_ = placement_of(placed_);
  }
  for (const Stage& stage : placement_->stages) operations_ += static_cast<std::int64_t>(stage.operations.size());
}

PlacementOptions Walk::placement_options() const {
  PlacementOptions how = quantum::placement_options(*state_);
  how.bits.clear();
  how.search_seconds = options_.search_seconds;
  return how;
}

template <typename Body>
void Walk::timed(ProfileEntry::Kind kind, const Body& body) {
  if (!options_.profile) return body();
  profile_.timed(kind, -1, body);
}

SimulationResult Walk::run(bool last) {
  const double begin = base::steady_seconds();
  profile_ = Profile();
  // Without shots a circuit with measurements inside runs once, as shot 0 would.
  std::vector<std::uint64_t> all(static_cast<std::size_t>(trajectories_));
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  result_.expectations.assign(options_.observables.size(), 0);
  open_.push_back({{}, std::move(all)});
  if (options_.resume != nullptr) resume(*options_.resume);
  while (!open_.empty()) {
    Branch branch = std::move(open_.back());
    open_.pop_back();
    profile_.set_run(static_cast<int>(result_.runs));
    follow(std::move(branch), nullptr);
  }
  std::stable_sort(result_.made.begin(), result_.made.end(),
                   [](const Run& a, const Run& b) { return a.first < b.first; });
  if (last) timed(ProfileEntry::Kind::sampling, [&] { result_.outcomes = shots_.outcomes(); });
  count_traffic(result_, state_->counters(), state_->group());
  result_.engine = machine_->counters();
  result_.disk = state_->disk();
  result_.seconds = base::steady_seconds() - begin;
  if (options_.profile) {
    result_.profile = profile_.entries();
    result_.pass_seconds = state_->pass_seconds();
  }
  return std::move(result_);
}

// Runs the program with the record of a branch, which grows with every further choice.
void Walk::follow(Branch branch, const CheckpointState* from) {
  Run run;
  present_ = &branch;
  made_ = &run;
  event_ = from != nullptr ? from->events : 0;
  if (from != nullptr) {
    PlacementOptions how = placement_options();
    how.bits = from->bits;
    how.done = from->done;
    const Placement rest = place(split_.body.circuit, result_.ranks, how);
    state_->set_layout(from->bits, 0);
    options_.restore(*state_);
    machine_->run_rest(rest, from->clbits);
  } else {
    if (style_ == Style::program) {
      std::vector<int> bits(static_cast<std::size_t>(state_->qubits()));
      std::iota(bits.begin(), bits.end(), 0);
      state_->set_layout(std::move(bits), 0);
      state_->set_basis_state(0);
    }
    if (!machine_->run()) return;
  }
  ++result_.runs;
  result_.fidelity_estimate = std::min(result_.fidelity_estimate, state_->fidelity_estimate());
  finish(branch, std::move(run));
}

void Walk::finish(const Branch& branch, Run run) {
  if (options_.shots > 0) timed(ProfileEntry::Kind::sampling, [&] { note(branch, machine_->clbits()); });
  if (!options_.observables.empty()) {
    timed(ProfileEntry::Kind::expectations, [&] {
      run.values = options_.mixed ? mixed_expectations(*state_, options_.observables)
                                  : expectations(*state_, options_.observables);
    });
  }
  const double part = static_cast<double>(branch.shots.size()) / static_cast<double>(trajectories_);
  for (std::size_t i = 0; i < run.values.size(); ++i) result_.expectations[i] += run.values[i] * part;
  if (style_ == Style::circuit) return;
  run.first = *std::min_element(branch.shots.begin(), branch.shots.end());
  run.count = static_cast<std::int64_t>(branch.shots.size());
  run.weight = branch.weight;
  run.clbits = machine_->clbits();
  if (!split_.body.saves.empty()) run.shots = branch.shots;
  result_.made.push_back(std::move(run));
}

// -- choices ----------------------------------------------------------------------------------------------------------

int Walk::choose(Branch& branch, std::span<const double> weights) {
  const std::size_t event = event_++;
  if (event < branch.record.size()) return branch.record[event];
  if (options_.exact) return take_first(branch, weights);
  return take_largest(branch, chosen(branch, weights), weights.size());
}

// The index that each shot of a branch chooses.
std::vector<int> Walk::chosen(const Branch& branch, std::span<const double> weights) {
  std::vector<int> result(branch.shots.size(), 0);
  const std::size_t event = event_ - 1;
  if (options_.split) {
    const auto all = static_cast<std::int64_t>(result.size());
    const std::int64_t ones = options_.split(all, std::clamp(weights[1], 0.0, 1.0));
    std::fill(result.end() - std::clamp<std::int64_t>(ones, 0, all), result.end(), 1);
    return result;
  }
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double number = detail::uniform(options_.seed, branch.shots[i], first_event_ + event);
    result[i] = style_ == Style::circuit ? static_cast<int>(number < weights[1]) : index_of(weights, number);
  }
  return result;
}

// Follows the index that most shots have chosen, of several the lowest. The other shots wait as new branches.
int Walk::take_largest(Branch& branch, const std::vector<int>& indices, std::size_t count) {
  std::vector<std::vector<std::uint64_t>> parts(count);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    parts[static_cast<std::size_t>(indices[i])].push_back(branch.shots[i]);
  }
  const auto smaller = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  auto largest = std::max_element(parts.begin(), parts.end(), smaller);
  // Splits by the caller go depth first, so that its random numbers have one order.
  if (options_.split && !parts.front().empty()) largest = parts.begin();
  for (auto part = parts.begin(); part != parts.end(); ++part) {
    if (part == largest || part->empty()) continue;
    Branch other{branch.record, std::move(*part)};
    other.record.push_back(static_cast<int>(part - parts.begin()));
    open_.push_back(std::move(other));
  }
  branch.shots = std::move(*largest);
  branch.record.push_back(static_cast<int>(largest - parts.begin()));
  return branch.record.back();
}

// Follows the first index that has a probability. The others wait as new branches.
int Walk::take_first(Branch& branch, std::span<const double> weights) {
  int first = -1;
  const double before = branch.weight;
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const double weight = before * (weights[k] / total);
    if (weight <= never) continue;
    if (first < 0) {
      first = static_cast<int>(k);
      branch.weight = weight;
      continue;
    }
    Branch other{branch.record, branch.shots, weight};
    other.record.push_back(static_cast<int>(k));
    open_.push_back(std::move(other));
  }
  branch.record.push_back(std::max(first, 0));
  return branch.record.back();
}

// -- shots ------------------------------------------------------------------------------------------------------------

// The values of the qubits that are measured at the end, for each of these shots.
std::vector<std::uint64_t> Walk::samples(const Branch& branch, std::span<const std::uint64_t> shots) {
  State& state = *state_;
  if (style_ == Style::circuit) return quantum::sample(state, split_.qubits, shots, options_.seed, split_.draws);
  const std::uint64_t seed = record_seed(options_.seed, branch.record);
  if (options_.mixed) return mixed_sample(state, split_.qubits, static_cast<std::int64_t>(shots.size()), seed);
  std::vector<std::uint64_t> numbers(shots.size());
  std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
  return quantum::sample(state, split_.qubits, numbers, seed, split_.draws);
}

void Walk::note(const Branch& branch, const std::vector<bool>& clbits) {
  const std::vector<std::uint64_t> later =
      style_ == Style::circuit ? std::vector<std::uint64_t>() : shots_of(branch.shots, trajectories_, options_.shots);
  const std::vector<std::uint64_t>& shots = style_ == Style::circuit ? branch.shots : later;
  if (shots.empty()) return;
  for (int bit = 0; bit < split_.body.circuit.clbits; ++bit) {
    const auto place = static_cast<std::size_t>(bit);
    if (!clbits[place] || (place < split_.elsewhere.size() && split_.elsewhere[place])) continue;
    for (const std::uint64_t shot : shots) shots_.set(shot, bit, true);
  }
  const auto values = samples(branch, shots);
  const bool exact = split_.body.readout.empty();
  base::parallel_for(state_->engine().threads, values.size(), 4096, [&](std::uint64_t begin, std::uint64_t end) {
    for (const auto& last : split_.last) {
      const int place = split_.place_of(last.second);
      for (std::uint64_t i = begin; i < end; ++i) {
        const bool value = (values[i] >> place & 1U) != 0;
        shots_.set(shots[i], last.first, exact ? value : split_.read(options_.seed, shots[i], last, value));
      }
    }
  });
}

// -- checkpoints ------------------------------------------------------------------------------------------------------

void Walk::between(Executor& executor, const Branch& branch) {
  if (options_.progress) {
    options_.progress({executor.operations_done(), operations_, result_.runs, options_.shots - open_shots(branch)});
  }
  if (!executor.finished() && options_.due && options_.due()) keep(executor, branch);
}

// Checks a checkpoint from any source: every index in it must be in range.
void Walk::check(const CheckpointState& checkpoint) const {
  const Circuit& circuit = split_.body.circuit;
  if (checkpoint.waiting.empty() || checkpoint.expectations.size() != result_.expectations.size() ||
      checkpoint.done.size() != circuit.operations.size() ||
      checkpoint.clbits.size() !=
          static_cast<std::size_t>(circuit.clbits) + static_cast<std::size_t>(circuit.hidden_clbits)) {
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
void Walk::resume(const CheckpointState& checkpoint) {
  check(checkpoint);
  shots_.set_words(checkpoint.outcomes);
  result_.expectations = checkpoint.expectations;
  result_.runs = checkpoint.runs;
  result_.fidelity_estimate = checkpoint.fidelity_estimate;
  open_ = checkpoint.waiting;
  for (Branch& branch : open_) {
    for (int& outcome : branch.record) outcome = outcome != 0 ? 1 : 0;
  }
  Branch branch = std::move(open_.back());
  open_.pop_back();
  follow(std::move(branch), &checkpoint);
}

void Walk::keep(Executor& executor, const Branch& branch) const {
  CheckpointState checkpoint;
  checkpoint.bits.assign(state_->bits().begin(), state_->bits().end());
  checkpoint.done = executor.done();
  checkpoint.clbits = executor.clbits();
  checkpoint.events = event_;
  checkpoint.waiting = open_;
  checkpoint.waiting.push_back(branch);
  checkpoint.outcomes = shots_.words();
  checkpoint.expectations = result_.expectations;
  checkpoint.runs = result_.runs;
  checkpoint.fidelity_estimate = result_.fidelity_estimate;
  options_.keep(*state_, checkpoint);
}

std::int64_t Walk::open_shots(const Branch& branch) const {
  auto count = static_cast<std::int64_t>(branch.shots.size());
  for (const Branch& other : open_) count += static_cast<std::int64_t>(other.shots.size());
  return std::min(count, options_.shots);
}

}  // namespace onehop::quantum
