#include "onehop/plan.h"

#include <span>
#include <string>
#include <utility>

#include "src/group/driven.h"
#include "src/plan/run/plan_run.h"

namespace onehop {

namespace {

constexpr std::uint32_t polls_per_liveness_check = 512;

[[noreturn]] void throw_broken() {
  throw BadInput("this plan has failed and cannot be used again; make a new group and a new plan");
}

[[noreturn]] void throw_undefined(const PeerLost& lost) {
  throw PeerLost(lost.rank(), lost.what() + std::string("; the elements that this plan writes are undefined now"));
}

template <class End>
PlanChannel channel_of(const End& end, bool sends) {
  const detail::SlotRing& ring = end.ring();
  return {.peer = end.peer(),
          .sends = sends,
          .bytes = end.bytes(),
          .slots = static_cast<int>(ring.slots),
          .slot_bytes = ring.slot_bytes,
          .chunk_bytes = ring.chunk_bytes};
}

}  // namespace

void Plan::Impl::begin(bool at_once) {
  if (state == State::broken) throw_broken();
  group->check_process();
  if (state == State::running) throw BadInput("start() was called twice without a finish() in between");
  state = State::broken;  // stays so after an exception
  round = 0;
  runs_on = at_once;
  if (program.watch) program.watch->begins();
  if (!program.rounds.empty()) begin_round();
  state = State::running;
}

bool Plan::Impl::next_round() {
  if (program.rounds.empty()) return false;
  end_round();
  if (round + 1 >= program.rounds.size()) return false;
  ++round;
  begin_round();
  return true;
}

Plan::Plan(const Group& group, const Schedule& schedule, std::span<const std::span<std::byte>> arrays,
           const PlanOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->group = group.state();
  impl_->program = detail::make_program(group, schedule, arrays, options);
}

Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

void Plan::start() {
  impl_->begin(false);
  if (impl_->program.watch) impl_->program.watch->close();
}
void Plan::finish() { impl_->finish(); }
void Plan::run() {
  impl_->begin(true);
  impl_->finish();
}

void Plan::Impl::wait_for_round() {
  detail::Waiting waiting(*group, program.polls);
  while (!all_moved()) {
    if (move()) {
      waiting.reset();
      continue;
    }
    if (program.polls) progress();
    waiting.idle([&] { return anything_to_do(); }, [&] { return waiting_for(); });
  }
}

void Plan::Impl::finish() {
  if (state == State::broken) throw_broken();
  group->check_process();
  if (state == State::idle) throw BadInput("finish() needs a start() before it");
  state = State::broken;  // until the run is complete; stays so after an exception
  if (program.watch) program.watch->open();
  try {
    do {
      wait_for_round();
    } while (next_round());
  } catch (const PeerLost& lost) {
    throw_undefined(lost);
  }
  state = State::idle;
  ++counters.runs;
  if (program.watch) program.watch->report();
}

bool Plan::test() {
  Impl& run = *impl_;
  if (run.state == Impl::State::broken) throw_broken();
  run.group->check_process();
  if (run.state == Impl::State::idle) return true;
  run.state = Impl::State::broken;  // stays so after an exception
  if (run.program.watch) run.program.watch->open();
  do {
    if (run.program.polls) run.progress();
    while (!run.all_moved() && run.move()) {
    }
  } while (run.all_moved() && run.next_round());
  const bool complete = run.all_moved();
  // Polling is a form of waiting: other messages must progress, and a lost peer must be noticed.
  if (!complete) detail::Driven::drive_any();
  if (!complete && ++run.failed_polls % polls_per_liveness_check == 0) {
    try {
      detail::Waiting(*run.group, run.program.polls)
          .check_peers([&] { return run.anything_to_do(); }, [&] { return run.waiting_for(); });
    } catch (const PeerLost& lost) {
      throw_undefined(lost);
    }
  }
  if (!complete && run.program.watch) run.program.watch->close();
  run.state = Impl::State::running;
  return complete;
}

const PlanCounters& Plan::counters() const noexcept { return impl_->counters; }
std::int64_t Plan::staging_bytes() const noexcept { return impl_->program.staging_bytes; }

std::vector<PlanChannel> Plan::channels() const {
  const detail::Program& program = impl_->program;
  std::vector<PlanChannel> found;
  for (std::size_t i = 0; i < program.senders.size(); ++i) {
    const Sender& sender = program.senders[i];
    PlanChannel& channel = found.emplace_back(channel_of(sender, true));
    channel.stores = sender.best_stores();
    channel.adaptive = sender.adaptive();
    channel.direct_puts = program.puts_done[i];
    channel.direct_stores = sender.best_stores(detail::StoreTarget::array);
    channel.rails = sender.rails();
    channel.rails_assigned = !program.rails_assigned.empty() && program.rails_assigned[i];
  }
  for (const Receiver& receiver : program.receivers) found.push_back(channel_of(receiver, false));
  return found;
}

}  // namespace onehop
