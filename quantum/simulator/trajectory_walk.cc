#include "quantum/simulator/trajectory_walk.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "quantum/circuit/random.h"
#include "quantum/state/sampling.h"

namespace onehop::quantum {
namespace {

// Random numbers of events that depend on the state: beyond the steps, before those of sampling.
constexpr std::uint64_t jump_events = std::uint64_t{1} << 36;
// With this many trajectories the walk stops at every channel that depends on the state, because some of them will
// leave at most of these. With fewer it runs many steps at once, and searches for the channel where a trajectory
// leaves.
constexpr std::size_t many = 128;

}  // namespace

TrajectoryWalk::TrajectoryWalk(const NoisyProgram& program, const SplitProgram& split, const Group& group,
                               const ProgramOptions& options, const StateOptions& of_states, std::size_t max_states,
                               Share share)
    : program_(program),
      split_(split),
      group_(group),
      options_(options),
      of_states_(of_states),
      max_states_(max_states),
      share_(share),
      words_(static_cast<std::size_t>(split.bits + 63) / 64) {}

State& TrajectoryWalk::state(std::size_t depth) {
  while (states_.size() <= depth) {
    states_.push_back(std::make_unique<State>(group_, split_.body.circuit.qubits, options_.precision, of_states_));
  }
  return *states_[depth];
}

double TrajectoryWalk::jump_threshold(const Live& live) const {
  return detail::uniform(options_.seed, live.trajectory, jump_events + 2 * std::uint64_t{live.jumps});
}

void TrajectoryWalk::run(const std::vector<std::vector<NoiseEvent>>& events) {
  events_ = &events;
  Node root;
  for (std::uint64_t t = 0; t < events.size(); ++t) {
    Live live{.trajectory = t};
    live.threshold = jump_threshold(live);
    root.live.push_back(live);
  }
  state(0).set_basis_state(0);
  dividing_ = true;
  walk(std::move(root));
  dividing_ = false;
  while (!deferred_.empty()) {
    Deferred next = std::move(deferred_.back());
    deferred_.pop_back();
    replay(state(0), next.record);
    Node node{.record = std::move(next.record), .live = std::move(next.live)};
    node.position = node.record.back().step + 1;
    node.norm = state(0).norm_squared();
    walk(std::move(node));
  }
  const double norm = state(0).norm_squared();
  if (norm > 0) state(0).scale(1 / std::sqrt(norm));
}

// Brings a state from |0...0> to just after the last event of a record.
void TrajectoryWalk::replay(State& state, const std::vector<NoiseEvent>& record) const {
  state.set_basis_state(0);
  std::size_t position = 0;
  for (const NoiseEvent& event : record) {
    program_.advance(state, position, event.step);
    program_.apply(state, event);
    position = event.step + 1;
  }
}

std::size_t TrajectoryWalk::next_event(const Node& node) const {
  std::size_t next = program_.steps();
  for (const Live& live : node.live) {
    const auto& events = (*events_)[live.trajectory];
    if (live.next < events.size()) next = std::min<std::size_t>(next, events[live.next].step);
  }
  return next;
}

void TrajectoryWalk::walk(Node node) {
  while (!node.live.empty()) {
    const std::size_t stop = next_event(node);
    State& ket = state(node.depth);
    if (node.live.size() < many && max_states_ > 1) {
      if (to_jump(node, stop)) {
        jump(node);
        continue;
      }
    } else if (const std::size_t dependent = program_.next_dependent(node.position); dependent < stop) {
      program_.advance(ket, node.position, dependent);
      node.position = dependent;
      jump(node);
      continue;
    } else {
      program_.advance(ket, node.position, stop);
    }
    if (stop != node.position) node.fresh = false;
    node.position = stop;
    if (stop == program_.steps()) {
      finish(node);
      return;
    }
    mix(node);
  }
}

// Runs to `stop`, or to the step before it at which the first trajectory leaves; returns whether one does.
bool TrajectoryWalk::to_jump(Node& node, std::size_t stop) {
  State& ket = state(node.depth);
  if (program_.next_dependent(node.position) >= stop) {
    program_.advance(ket, node.position, stop);
    return false;
  }
  if (!before_) {
    before_ = std::make_unique<State>(group_, split_.body.circuit.qubits, options_.precision, of_states_);
  }
  if (!node.fresh) before_->copy_from(ket);
  program_.advance(ket, node.position, stop);
  const double norm = ket.norm_squared();
  const double survival = node.survival * norm / node.norm;
  double threshold = -1;
  for (const Live& live : node.live) threshold = std::max(threshold, live.threshold);
  if (threshold < survival) {
    node.norm = norm;
    node.survival = survival;
    return false;
  }
  if (node.fresh) {
    // The parent still has the state from which this node branched off.
    if (node.depth > 0) {
      before_->copy_from(state(node.depth - 1));
      program_.apply(*before_, node.record.back());
    } else {
      replay(*before_, node.record);
    }
  }
  locate(node, stop, threshold, survival);
  return true;
}

// Finds the channel at which the survival falls to `threshold`, and brings the state there. `before_` has the state at
// node.position; `survival` is that at `stop`. The logarithm of the survival is nearly linear in the steps, so the
// search interpolates, a little below and above the expected step in turn.
void TrajectoryWalk::locate(Node& node, std::size_t stop, double threshold, double survival) {
  std::unique_ptr<State>& ket = states_[node.depth];
  const auto& channels = program_.dependent();
  auto first = std::lower_bound(channels.begin(), channels.end(), node.position) - channels.begin();
  auto last = std::lower_bound(channels.begin(), channels.end(), stop) - channels.begin();
  // The channel is one of [first, last).
  for (int turn = 0; last - first > 1; ++turn) {
    double part = 0.5;
    if (turn % 3 != 2 && threshold > 0 && survival > 0 && survival < node.survival) {
      part = std::log(node.survival / threshold) / std::log(node.survival / survival);
      part += (turn % 3 == 0 ? -1 : 1) / 16.0;
    }
    const auto middle =
        std::clamp(first + static_cast<std::ptrdiff_t>(part * static_cast<double>(last - first)), first + 1, last - 1);
    const std::size_t step = channels[static_cast<std::size_t>(middle)];
    ket->copy_from(*before_);
    program_.advance(*ket, node.position, step);
    const double norm = ket->norm_squared();
    const double there = node.survival * norm / node.norm;
    if (there > threshold) {
      std::swap(ket, before_);
      node.position = step;
      node.norm = norm;
      node.survival = there;
      first = middle;
    } else {
      survival = there;
      last = middle;
    }
  }
  std::swap(ket, before_);
  const std::size_t step = channels[static_cast<std::size_t>(first)];
  program_.advance(*ket, node.position, step);
  node.position = step;
  node.fresh = false;
}

// At a channel that depends on the state: the trajectories whose threshold the survival crosses branch off.
void TrajectoryWalk::jump(Node& node) {
  State& ket = state(node.depth);
  const std::size_t step = node.position;
  const std::uint32_t usual = program_.default_operator(step);
  const std::vector<double> weights = program_.weights(ket, step);
  double total = 0;
  for (const double weight : weights) total += weight;
  const double survival = node.survival * weights[usual] / total;
  std::map<std::uint32_t, std::vector<Live>> leaving;
  std::erase_if(node.live, [&](Live live) {
    if (live.threshold < survival) return false;
    const std::uint64_t event = jump_events + 2 * std::uint64_t{live.jumps} + 1;
    const double number = detail::uniform(options_.seed, live.trajectory, event) * (total - weights[usual]);
    const std::uint32_t chosen = other_operator(weights, usual, number);
    if (chosen == usual) return false;  // the other weights vanish within rounding
    ++live.jumps;
    live.threshold = jump_threshold(live);
    leaving[chosen].push_back(live);
    return true;
  });
  for (auto& [op, live] : leaving) {
    child(node, {static_cast<std::uint32_t>(step), op}, std::move(live), weights[op]);
  }
  if (node.live.empty()) return;
  program_.advance(ket, step, step + 1);
  node.position = step + 1;
  node.norm = weights[usual];
  node.survival = survival;
  node.fresh = false;
}

// At a channel whose operators were drawn in advance: the trajectories that drew another one than the default.
void TrajectoryWalk::mix(Node& node) {
  std::map<std::uint32_t, std::vector<Live>> leaving;
  std::erase_if(node.live, [&](Live live) {
    const auto& events = (*events_)[live.trajectory];
    if (live.next >= events.size() || events[live.next].step != node.position) return false;
    const std::uint32_t op = events[live.next++].op;
    // The branch counts its survival from here.
    live.threshold /= node.survival;
    leaving[op].push_back(live);
    return true;
  });
  for (auto& [op, live] : leaving) {
    child(node, {static_cast<std::uint32_t>(node.position), op}, std::move(live), node.norm);
  }
}

void TrajectoryWalk::child(const Node& parent, NoiseEvent event, std::vector<Live> live, double norm) {
  if (dividing_ && parent.depth == 0 && children_++ % share_.workers != share_.worker) return;
  std::vector<NoiseEvent> record = parent.record;
  record.push_back(event);
  // One more state is `before_`.
  if (parent.depth + 2 >= max_states_) {
    deferred_.push_back({std::move(record), std::move(live)});
    return;
  }
  State& ket = state(parent.depth + 1);
  ket.copy_from(state(parent.depth));
  program_.apply(ket, event);
  walk({.depth = parent.depth + 1,
        .record = std::move(record),
        .live = std::move(live),
        .position = event.step + std::size_t{1},
        .norm = norm});
}

void TrajectoryWalk::finish(const Node& node) {
  if (dividing_ && node.depth == 0 && share_.worker != 0) return;
  State& ket = state(node.depth);
  Run history;
  history.first = node.live.front().trajectory;
  for (const Live& live : node.live) history.first = std::min(history.first, live.trajectory);
  history.count = static_cast<std::int64_t>(node.live.size());
  if (options_.shots > 0) sample(node);
  if (!options_.observables.empty()) {
    const double norm = ket.norm_squared();
    history.values = expectations(ket, options_.observables);
    for (auto& value : history.values) value /= norm;
  }
  histories.push_back(std::move(history));
}

void TrajectoryWalk::sample(const Node& node) {
  std::vector<std::uint64_t> runs;
  for (const Live& live : node.live) runs.push_back(live.trajectory);
  const std::vector<std::uint64_t> own = shots_of(runs, static_cast<std::int64_t>(events_->size()), options_.shots);
  const auto values = quantum::sample(state(node.depth), split_.qubits, own, options_.seed, split_.draws);
  const std::size_t first = outcomes.size();
  shots.insert(shots.end(), own.begin(), own.end());
  outcomes.resize(first + own.size() * words_);
  for (const auto& last : split_.last) {
    const int place = split_.place_of(last.second);
    for (std::size_t i = 0; i < own.size(); ++i) {
      const bool one = split_.read(options_.seed, own[i], last, (values[i] >> place & 1U) != 0);
      outcomes[first + i * words_ + static_cast<std::size_t>(last.first) / 64] |= std::uint64_t{one} << last.first % 64;
    }
  }
}

StateCounters TrajectoryWalk::counters() const {
  StateCounters sum;
  if (before_) sum.add(before_->counters());
  for (const auto& state : states_) sum.add(state->counters());
  return sum;
}

std::unique_ptr<State> TrajectoryWalk::take_state() { return std::move(states_.front()); }

}  // namespace onehop::quantum
