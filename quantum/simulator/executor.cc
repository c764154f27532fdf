// Executes a placement on a state.
#include <algorithm>
#include <cmath>
#include <string>

#include "onehop/error.h"
#include "onehop/quantum/simulator.h"
#include "quantum/engine/big_tiles.h"
#include "quantum/simulator/circuit_cache.h"
#include "src/base/text.h"
#include "src/base/trace.h"

namespace onehop::quantum {
namespace {

void trace_passes(std::span<const PassRecord> records) {
  const std::uint32_t name = trace::name_of("pass");
  for (const PassRecord& record : records) {
    trace::record({.begin = static_cast<std::int64_t>(record.begin * 1e9),
                   .end = static_cast<std::int64_t>((record.begin + record.seconds) * 1e9),
                   .name = name,
                   .kind = trace::Kind::pass,
                   .count = static_cast<std::uint32_t>(record.pass.gates)});
  }
}

}  // namespace

Executor::Executor(State& state, const Placement& placement, int clbits, Draw draw, Profile* profile)
    : state_(state),
      placement_(placement),
      draw_(std::move(draw)),
      profile_(profile),
      clbits_(static_cast<std::size_t>(clbits), false),
      done_(placement.operations.size(), true) {
  if (state.qubits() != placement.qubits || state.group().size() != placement.ranks) {
    throw BadInput("expected a placement of " + base::counted(state.qubits(), "qubit") + " on " +
                   base::counted(state.group().size(), "rank") + ", like the state, found one of " +
                   std::to_string(placement.qubits) + " on " + std::to_string(placement.ranks));
  }
  for (const Stage& stage : placement.stages) {
    for (const int index : stage.operations) done_[static_cast<std::size_t>(index)] = false;
  }
  if (!placement.first_state.empty()) {
    timed(ProfileEntry::Kind::first_state, [&] { state.set_product(placement.first_state, placement.first_bits); });
  }
  // The state's qubits are wires until the circuit is done.
  if (!std::equal(state.bits().begin(), state.bits().end(), placement.first_bits.begin())) {
    throw BadInput(
        "the state's layout differs from the placement's first layout; make the placement with `bits` set to the "
        "state's");
  }
}

bool Executor::step() {
  if (stage_ == placement_.stages.size()) return false;
  if (next_ == 0) enter_stage();
  const Stage& stage = placement_.stages[stage_];
  const std::size_t end = std::min(stage.operations.size(), next_ + most_together);
  if (state_.is_stored()) {
    make_pass();
  } else if (!run_compiled(end)) {
    while (next_ < end) do_one(stage.operations[next_++]);
    flush();
  }
  if (next_ < stage.operations.size() || !pending_.empty()) return true;
  next_ = 0;
  if (++stage_ < placement_.stages.size()) return true;
  // Turn wires back into qubits, which the circuit's swaps have renamed.
  std::vector<int> bits;
  for (const int wire : placement_.wires) bits.push_back(state_.bits()[static_cast<std::size_t>(wire)]);
  state_.set_layout(std::move(bits), state_.flips());
  return true;
}

template <typename Body>
void Executor::timed(ProfileEntry::Kind kind, const Body& body) {
  if (profile_ == nullptr) return body();
  profile_->timed(kind, static_cast<int>(stage_), body);
}

void Executor::enter_stage() {
  const auto& swaps = placement_.stages[stage_].swaps;
  if (profile_ == nullptr || swaps.empty()) return state_.exchange(swaps);
  const std::int64_t sent = state_.counters().bytes_sent;
  const double begin = profile_->now();
  state_.exchange(swaps);
  profile_->add({.kind = ProfileEntry::Kind::exchange,
                 .stage = static_cast<int>(stage_),
                 .begin = begin,
                 .seconds = profile_->now() - begin,
                 .bytes = state_.counters().bytes_sent - sent});
}

// Makes one pass over a state in a file, so that checkpoints can come between passes. Gates whose conditions hold must
// not wait for it while classical bits change.
void Executor::make_pass() {
  const std::vector<int>& operations = placement_.stages[stage_].operations;
  for (; next_ < operations.size(); ++next_) {
    const int index = operations[next_];
    if (!placement_.operations[static_cast<std::size_t>(index)].is_gate() && !pending_.empty()) break;
    do_one(index);
  }
  flush();
}

std::vector<bool> Executor::done() const {
  std::vector<bool> result = done_;
  for (const LocalOperation& operation : pending_) result[static_cast<std::size_t>(operation.source)] = false;
  return result;
}

void Executor::flush() {
  std::vector<PassRecord> records;
  const bool timed = profile_ != nullptr || trace::is_on();
  const EngineCounters more = state_.apply_some(pending_, timed ? &records : nullptr);
  if (trace::is_on()) trace_passes(records);
  if (profile_ != nullptr && more.operations > 0) {
    const auto bytes = std::llround(std::ldexp(2 * bytes_per_amplitude(state_.precision()), state_.local_bits()));
    profile_->add(more, records, static_cast<int>(stage_), bytes);
  }
  counters_.add(more);
}

// Runs the gates up to `end` from the compiled circuit. Returns false if the state is too large or the part has
// operations other than unconditional gates. Profiles never take this path, because they show the planning and the
// passes.
bool Executor::run_compiled(std::size_t end) {
  if (compiled_ == nullptr || profile_ != nullptr || trace::is_on() ||
      state_.local_bits() > EngineProgram<double>::max_bits || is_encoded(state_.precision()) ||
      state_.on_device() != nullptr) {
    return false;
  }
  const std::uint64_t flips = state_.flips();
  const std::size_t begin = next_;
  const int rank = state_.group().rank();
  auto part = compiled_->find(rank, stage_, begin, flips);
  const std::span<const int> operations(placement_.stages[stage_].operations);
  if (part == nullptr) {
    for (const int index : operations.subspan(next_, end - next_)) {
      const Operation& operation = placement_.operations[static_cast<std::size_t>(index)];
      if (!operation.is_gate() || !operation.condition.clbits.empty()) return false;
    }
    while (next_ < end) do_one(operations[next_++]);
    part = compiled_->keep({rank, stage_, begin, flips, state_.flips(), {}}, std::move(pending_), state_);
    pending_.clear();
  } else {
    for (; next_ < end; ++next_) done_[static_cast<std::size_t>(operations[next_])] = true;
    operations_done_ += static_cast<std::int64_t>(end - begin);
    if (flips != part->flips_after) {
      state_.set_layout({state_.bits().begin(), state_.bits().end()}, part->flips_after);
    }
  }
  counters_.add(part->run(state_));
  return true;
}

Executor::Drawn Executor::measure(int index, int target) {
  flush();
  const Operation& operation = placement_.operations[static_cast<std::size_t>(index)];
  const int wire = operation.targets[static_cast<std::size_t>(target)];
  std::vector<double> p;
  timed(ProfileEntry::Kind::measurement, [&] { p = state_.probabilities(std::span(&wire, 1)); });
  const double all = p[0] + p[1];
  const Drawn drawn = draw_(index, target, p[1] / all);
  const int outcome = drawn.outcome;
  const double probability = p[static_cast<std::size_t>(outcome)];
  if (!(probability > 0)) {
    throw Error("operation " + std::to_string(index) + " (" + operation.name + "): the outcome " +
                std::to_string(outcome) + " has probability 0");
  }
  timed(ProfileEntry::Kind::measurement, [&] { state_.collapse(wire, outcome, probability); });
  return drawn;
}

void Executor::do_one(int index) {
  const Operation& operation = placement_.operations[static_cast<std::size_t>(index)];
  done_[static_cast<std::size_t>(index)] = true;
  ++operations_done_;
  if (operation.kind == OperationKind::assign) {
    clbits_[static_cast<std::size_t>(operation.clbits[0])] = operation.condition.holds(clbits_);
    return;
  }
  if (!operation.condition.holds(clbits_)) return;
  if (operation.is_gate()) {
    std::uint64_t flips = state_.flips();
    auto local = localize(operation, state_.bits(), state_.local_bits(), state_.group().rank(), flips);
    if (local) {
      local->source = index;
      pending_.push_back(std::move(*local));
    }
    if (flips != state_.flips()) state_.set_layout({state_.bits().begin(), state_.bits().end()}, flips);
    return;
  }
  for (int target = 0; target < static_cast<int>(operation.targets.size()); ++target) {
    const Drawn drawn = measure(index, target);
    if (operation.kind == OperationKind::measure) {
      clbits_[static_cast<std::size_t>(operation.clbits[static_cast<std::size_t>(target)])] = drawn.read != 0;
    } else if (drawn.outcome != 0) {
      state_.flip(operation.targets[static_cast<std::size_t>(target)]);
    }
  }
}

}  // namespace onehop::quantum
