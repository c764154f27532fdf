#include "machine/simulate/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "onehop/error.h"
#include "src/base/memory_left.h"

namespace onehop::detail {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
// With fewer flows under way, rates are computed again at every change.
constexpr std::size_t few_flows = 2000;
constexpr std::uint64_t steps_between_reports = 256;
// Times that differ by less than this factor are equal.
constexpr double rounding = 1 + 1e-12;

// What the messages take, with their routes, and each class in each round: its times, and its lists of messages.
void check_memory(const Traffic& traffic, const Classes& classes) {
  double messages = 0;
  for (const TrafficRound& round : traffic.rounds) messages += static_cast<double>(round.messages.size());
  check_room("simulate", messages, "messages", listed_message_bytes);
  const double each = static_cast<double>(classes.size()) * static_cast<double>(traffic.rounds.size());
  check_room("simulate", each, "ranks in rounds", sizeof(RankSpan) + sizeof(std::vector<int>) + 20);
}

}  // namespace

Engine::Engine(const Traffic& traffic, const Network& network, const Classes& classes, const SimulateOptions& options)
    : traffic_(traffic),
      network_(network),
      classes_(classes),
      options_(options),
      links_((check_memory(traffic, classes), network)),
      rounds_(traffic.rounds.size()),
      first_flow_(traffic.rounds.size(), 0),
      states_(classes.size()),
      early_arrivals_(classes.size()),
      level_bytes_(network.machine().levels.size(), 0),
      round_end_(traffic.rounds.size(), 0),
      timelines_(classes.size(), std::vector<RankSpan>(traffic.rounds.size())) {}

double Engine::compute_seconds(int round) const {
  if (options_.compute.empty()) return 0;
  return options_.compute.size() == 1 ? options_.compute.front() : options_.compute[static_cast<std::size_t>(round)];
}

// Seconds to copy bytes in a processor's memory, which reads and writes them.
double Engine::copy_seconds(double bytes) const { return 2 * bytes / network_.machine().memory_bandwidth.value; }

// Seconds of the copies inside a rank in a round.
double Engine::local_seconds(int round, std::uint32_t rank) const {
  const RoundFlows& flows = rounds_[static_cast<std::size_t>(round)];
  const Machine& machine = network_.machine();
  const double bytes = flows.local_bytes[rank];
  if (bytes <= 0) return 0;
  const double pieces = flows.local_pieces[rank] * machine.copied_piece.value;
  const TrafficRound& traffic = traffic_.rounds[static_cast<std::size_t>(round)];
  const bool in_place = traffic.local_in_place;
  if (in_place && traffic.shared && !machine.shared_updates.empty()) return machine.shared_updates.seconds(bytes);
  if (in_place && !machine.updates.empty()) return machine.updates.seconds(bytes);
  if (traffic.collective && network_.collective_seconds(0, bytes) > 0) return 0;  // a part of that time
  if (machine.copies.empty()) return copy_seconds(bytes) + pieces;
  // Each half moves in the place of the other.
  if (in_place) return 2 * machine.copies.seconds(bytes / 2);
  return machine.copies.seconds(bytes) + pieces;
}

// The greatest rate of a flow: that of one link, of a message that flows alone, of packing, and of its slots.
double Engine::rate_limit(const Flow& flow, double limit) const {
  const Level& level = network_.machine().levels[static_cast<std::size_t>(flow.level)];
  if (!flow.collective && !level.one_way.empty() && flow.bytes > 0) {
    limit = std::min(limit, flow.bytes / network_.flow_seconds(flow.level, flow.bytes));
  }
  if (options_.chunk_bytes > 0) limit = std::min(limit, network_.machine().memory_bandwidth.value / 2);
  const auto slot = static_cast<double>(options_.slot_bytes);
  if (slot <= 0 || flow.bytes <= slot) return limit;
  const double turn = slot / limit + 2 * flow.latency + 2 * copy_seconds(std::min(slot, chunk()));
  return std::min(limit, options_.slots * slot / turn);
}

void Engine::load_round(int round) {
  RoundFlows& loaded = rounds_[static_cast<std::size_t>(round)];
  loaded = classes_.flows_of(traffic_.rounds[static_cast<std::size_t>(round)], links_);
  first_flow_[static_cast<std::size_t>(round)] = flows_.size();
  const std::size_t shift = table_.uses.size();
  table_.uses.insert(table_.uses.end(), loaded.table.uses.begin(), loaded.table.uses.end());
  for (std::size_t f = 0; f < loaded.flows.size(); ++f) {
    const Flow& flow = loaded.flows[f];
    flows_.push_back({flow, round, flow.bytes});
    table_.first.push_back(loaded.table.first[f] + shift);
    table_.last.push_back(options_.contention ? loaded.table.last[f] + shift : table_.first.back());
    table_.limit.push_back(rate_limit(flow, loaded.table.limit[f]));
    level_bytes_[static_cast<std::size_t>(flow.level)] += flow.bytes * flow.count * classes_.population();
  }
  for (std::size_t link = link_bytes_.size(); link < links_.size(); ++link) {
    max_min_.set_bandwidth(static_cast<std::uint32_t>(link), network_.bandwidth(links_.link(link)));
  }
  link_bytes_.resize(links_.size(), 0);
  for (std::size_t f = 0; f < loaded.flows.size(); ++f) {
    for (std::size_t u = loaded.table.first[f]; u < loaded.table.last[f]; ++u) {
      link_bytes_[loaded.table.uses[u].link] += loaded.table.uses[u].weight * loaded.flows[f].bytes;
    }
  }
  loaded.table = {};
  rates_.resize(flows_.size(), 0);
}

void Engine::begin_round(std::uint32_t rank, double time) {
  ClassState& state = states_[rank];
  ++state.round;
  if (state.round == static_cast<int>(traffic_.rounds.size())) return;
  const auto round = static_cast<std::size_t>(state.round);
  if (rounds_[round].out.empty()) {
    load_round(state.round);
    newest_round_start_ = time;
  }
  post_sends(rank, time);
  state.to_send = static_cast<std::uint32_t>(rounds_[round].out[rank].size());
  state.to_receive = rounds_[round].incoming[rank];
  state.sent_until = time;
  RankSpan& span = timelines_[rank][round];
  span.begin = time;
  span.posted = state.busy_until;
  state.busy_until += local_seconds(state.round, rank) + compute_seconds(state.round);
  state.least_end = state.busy_until;
  for (const std::uint32_t flow : rounds_[round].out[rank]) {
    state.least_end += rounds_[round].flows[flow].count * rounds_[round].flows[flow].work;
  }
  span.computed = state.busy_until;
  state.in_round = true;
  std::vector<EarlyArrival> waiting;
  std::swap(waiting, early_arrivals_[rank]);
  for (const EarlyArrival& one : waiting) {
    if (flows_[one.flow].round == state.round) {
      receive(one.flow, one.time);
    } else {
      early_arrivals_[rank].push_back(one);
    }
  }
  end_round_if_done(rank);
}

// Starts the messages of a round one after the other: the processor is busy for the overhead of each, and begins them
// at least a gap apart. The flows of a batch start at the mean of the times at which its messages are ready.
void Engine::post_sends(std::uint32_t rank, double begin) {
  const auto round = static_cast<std::size_t>(states_[rank].round);
  const auto& out = rounds_[round].out[rank];
  double next = begin;  // the next message begins
  double ready = begin;
  std::size_t i = 0;
  while (i < out.size()) {
    const int batch = rounds_[round].flows[out[i]].batch;
    Batch one{batch_flows_.size(), 0};
    const double first = next;
    double count = 0;
    double overheads = 0;
    for (; i < out.size() && rounds_[round].flows[out[i]].batch == batch; ++i) {
      const Flow& flow = rounds_[round].flows[out[i]];
      const double busy = busy_seconds(flow, flow.pieces.sent);
      next += flow.count * std::max(busy, flow.gap);
      overheads += flow.count * busy;
      count += flow.count;
      batch_flows_.push_back(static_cast<std::uint32_t>(first_flow_[round] + out[i]));
    }
    const double step = (next - first) / count;
    const double overhead = overheads / count;
    one.last = batch_flows_.size();
    events_.push(
        {(first + next - step) / 2 + overhead, EventKind::start_flows, static_cast<std::uint32_t>(batches_.size())});
    batches_.push_back(one);
    ready = next - step + overhead;
  }
  states_[rank].busy_until = ready;
}

void Engine::start_flows(std::uint32_t batch, double time) {
  for (std::size_t i = batches_[batch].first; i < batches_[batch].last; ++i) {
    const std::uint32_t flow = batch_flows_[i];
    if (flows_[flow].bytes_left <= 0) {
      finish_flow(flow, time);
      continue;
    }
    active_flows_.push_back(flow);
    rates_stale_ = true;
  }
}

void Engine::finish_flow(std::uint32_t flow, double time) {
  const Flow& one = flows_[flow].flow;
  ClassState& sender = states_[one.from];
  --sender.to_send;
  sender.sent_until = std::max(sender.sent_until, time);
  double arrival = time + one.latency;
  arrival += 2 * copy_seconds(std::min(one.bytes, chunk()));
  events_.push({arrival, EventKind::deliver, flow});
  end_round_if_done(one.from);
}

void Engine::deliver(std::uint32_t flow, double time) {
  const std::uint32_t rank = flows_[flow].flow.to;
  if (!states_[rank].in_round || states_[rank].round != flows_[flow].round) {
    early_arrivals_[rank].push_back({flow, time});
    return;
  }
  receive(flow, time);
  end_round_if_done(rank);
}

void Engine::receive(std::uint32_t flow, double time) {
  const Flow& one = flows_[flow].flow;
  ClassState& receiver = states_[one.to];
  const double busy = one.count * busy_seconds(one, one.pieces.received);
  receiver.busy_until = std::max(receiver.busy_until, time) + busy;
  receiver.least_end += busy + one.count * one.work;
  --receiver.to_receive;
}

void Engine::end_round_if_done(std::uint32_t rank) {
  ClassState& state = states_[rank];
  if (!state.in_round || state.to_send > 0 || state.to_receive > 0) return;
  state.in_round = false;
  const double end = std::max({state.busy_until, state.sent_until, state.least_end});
  const auto round = static_cast<std::size_t>(state.round);
  timelines_[rank][round].end = end;
  round_end_[round] = std::max(round_end_[round], end);
  finished_rounds_ += 1;
  events_.push({end, EventKind::begin_round, rank});
}

// Lets all flows that are under way run until `time`; those that end before end at their own time.
void Engine::advance_flows(double time) {
  const double seconds = time - now_;
  std::size_t kept = 0;
  finished_flows_.clear();
  for (const std::uint32_t flow : active_flows_) {
    const double needed = flows_[flow].bytes_left / rates_[flow];
    if (needed <= seconds * rounding) {
      finished_flows_.emplace_back(now_ + needed, flow);
      continue;
    }
    flows_[flow].bytes_left -= rates_[flow] * seconds;
    active_flows_[kept++] = flow;
  }
  rates_stale_ = rates_stale_ || kept < active_flows_.size();
  active_flows_.resize(kept);
  now_ = time;
  std::ranges::sort(finished_flows_);
  for (const auto& [end, flow] : finished_flows_) finish_flow(flow, end);
}

// The time within which changes are taken together.
double Engine::time_tolerance() const {
  const double least = now_ * (rounding - 1);
  return active_flows_.size() <= few_flows ? least : std::max(least, options_.accuracy * (now_ - newest_round_start_));
}

void Engine::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::start_flows:
      start_flows(event.index, std::max(event.time, now_));
      break;
    case EventKind::deliver:
      deliver(event.index, event.time);
      break;
    case EventKind::begin_round:
      begin_round(event.index, event.time);
      break;
  }
}

// Handles everything that happens at about the present time, and moves on to the next time at which the flows change.
void Engine::next_step() {
  const auto handle_next_event = [&] {
    const Event event = events_.top();
    events_.pop();
    handle(event);
  };
  while (!events_.empty() && events_.top().time <= now_ + time_tolerance()) handle_next_event();
  if (rates_stale_) {
    max_min_.solve(table_, active_flows_, rates_);
    rates_stale_ = false;
    next_completion_ = never;
    for (const std::uint32_t flow : active_flows_) {
      next_completion_ = std::min(next_completion_, now_ + flows_[flow].bytes_left / rates_[flow]);
    }
  }
  const double next_event = events_.empty() ? never : events_.top().time;
  if (next_completion_ <= next_event && !active_flows_.empty()) {
    advance_flows(std::max(next_completion_, std::min(next_completion_ + time_tolerance(), next_event)));
  } else if (!events_.empty() && events_.top().kind == EventKind::start_flows) {
    advance_flows(next_event);
  } else if (!events_.empty()) {
    handle_next_event();  // flows do not change by it
  }
  if (++steps_ % steps_between_reports == 0) report();
}

void Engine::report() {
  if (!options_.progress) return;
  const double all = static_cast<double>(states_.size()) * static_cast<double>(traffic_.rounds.size());
  if (!options_.progress(finished_rounds_ / all)) throw Error("simulate: cancelled");
}

// Messages that have both a sender and a receiver cannot deadlock, so that an error here is one of onehop.
void Engine::check_all_done() const {
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    const ClassState& state = states_[rank];
    if (state.round == static_cast<int>(traffic_.rounds.size())) continue;
    std::string text = "simulate: deadlock: rank " + std::to_string(classes_.representative(rank)) + " waits";
    for (const Flow& flow : rounds_[static_cast<std::size_t>(state.round)].flows) {
      if (flow.to != rank || states_[flow.from].round > state.round) continue;
      text += " for rank " + std::to_string(classes_.representative(flow.from));
      break;
    }
    throw Error(text + " in round " + std::to_string(state.round));
  }
}

void Engine::run(Simulation& result) {
  for (std::uint32_t rank = 0; rank < states_.size(); ++rank) events_.push({0, EventKind::begin_round, rank});
  while (!events_.empty() || !active_flows_.empty()) next_step();
  check_all_done();
  double before = 0;
  for (std::size_t k = 0; k < rounds_.size(); ++k) {
    const double end = std::max(before, round_end_[k]);
    result.rounds.push_back({end - before, static_cast<std::int64_t>(std::llround(rounds_[k].messages)),
                             rounds_[k].bytes, traffic_.rounds[k].schedule_rounds});
    before = end;
  }
  result.seconds = before;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    result.timeline_ranks.push_back(classes_.representative(i));
  }
  result.timelines = std::move(timelines_);
  fill_links(result);
}

void Engine::fill_links(Simulation& result) const {
  const auto& levels = network_.machine().levels;
  for (std::size_t l = 0; l < levels.size(); ++l) result.bytes_by_level.push_back({levels[l].name, level_bytes_[l]});
  std::vector<std::uint32_t> order(links_.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<double> seconds(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) seconds[i] = link_bytes_[i] / network_.bandwidth(links_.link(i));
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return seconds[a] != seconds[b] ? seconds[a] > seconds[b] : links_.link(a).key() < links_.link(b).key();
  });
  constexpr std::size_t most = 100000;
  if (order.size() > most) order.resize(most);
  for (const std::uint32_t number : order) {
    const Link link = links_.link(number);
    result.links.push_back({network_.name(link), levels[static_cast<std::size_t>(link.level)].name, link_bytes_[number],
                            network_.bandwidth(link), links_.alike(number)});
  }
}

}  // namespace onehop::detail
