#include "quantum/placement/swap_set.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace onehop::quantum::detail {
namespace {

constexpr int never = std::numeric_limits<int>::max();

int distance(const CircuitScheduler& scheduler, int wire, bool by_level) {
  const int index = scheduler.next_need(wire);
  if (index < 0) return never;
  return by_level ? scheduler.dependencies().level[static_cast<std::size_t>(index)] : index;
}

// The blocked operation that comes first.
int first_blocked(const CircuitScheduler& scheduler, bool by_level) {
  const auto& blocked = scheduler.blocked();
  const auto& level = scheduler.dependencies().level;
  return *std::min_element(blocked.begin(), blocked.end(), [&](int a, int b) {
    const auto la = by_level ? level[static_cast<std::size_t>(a)] : 0;
    const auto lb = by_level ? level[static_cast<std::size_t>(b)] : 0;
    return la != lb ? la < lb : a < b;
  });
}

struct Candidates {
  std::vector<int> in;   // soonest use first; the first `needed` are those that the first blocked operation needs
  std::vector<int> out;  // latest use first
  std::size_t needed = 0;
};

Candidates candidates_of(const CircuitScheduler& scheduler, const Heuristic& heuristic, const SearchOptions& options) {
  Candidates result;
  const int first = first_blocked(scheduler, heuristic.by_level);
  const auto& local = scheduler.dependencies().commutations[static_cast<std::size_t>(first)].local;
  const auto is_needed = [&](int wire) { return std::find(local.begin(), local.end(), wire) != local.end(); };
  const int wires = static_cast<int>(scheduler.remote().size());
  std::vector<int> key(static_cast<std::size_t>(wires));
  for (int wire = 0; wire < wires; ++wire) {
    key[static_cast<std::size_t>(wire)] = distance(scheduler, wire, heuristic.by_level);
    if (!scheduler.remote()[static_cast<std::size_t>(wire)]) {
      if (!is_needed(wire)) result.out.push_back(wire);
    } else if (is_needed(wire)) {
      ++result.needed;
      result.in.push_back(wire);
    } else if (key[static_cast<std::size_t>(wire)] != never) {
      result.in.push_back(wire);
    }
  }
  const auto at = [&](int wire) { return key[static_cast<std::size_t>(wire)]; };
  std::sort(result.in.begin(), result.in.end(), [&](int a, int b) {
    if (is_needed(a) != is_needed(b)) return is_needed(a);
    return at(a) != at(b) ? at(a) < at(b) : a < b;
  });
  const auto kept = [&](int wire) {
    return heuristic.keep_pinned && !options.pinned.empty() && options.pinned[static_cast<std::size_t>(wire)];
  };
  std::sort(result.out.begin(), result.out.end(), [&](int a, int b) {
    if (kept(a) != kept(b)) return kept(b);
    return at(a) != at(b) ? at(a) > at(b) : a > b;
  });
  return result;
}

std::int64_t steps_of(const Dependencies& dependencies) { return static_cast<std::int64_t>(dependencies.size()) + 1; }

double cost_of(const SwapSet& swap_set, const SearchOptions& options) {
  const bool low = std::any_of(swap_set.out.begin(), swap_set.out.end(), [&](int wire) {
    return !options.pinned.empty() && options.pinned[static_cast<std::size_t>(wire)];
  });
  // Moving parts of cache lines takes about twice as long within a machine, and no longer between machines.
  return detail::cost_of(swap_set.in.size()) * (low ? 1.15 : 1);
}

// Follows one heuristic to the end of the circuit, or until the cost reaches `give_up`.
ExchangeSequence follow(CircuitScheduler scheduler, const Heuristic& heuristic, const SearchOptions& options,
                        double give_up) {
  ExchangeSequence sequence;
  while (scheduler.run(), !scheduler.finished()) {
    const SwapSet swap_set = choose_swaps(scheduler, heuristic, options);
    sequence.cost += cost_of(swap_set, options);
    if (sequence.cost >= give_up) break;
    scheduler.exchange(swap_set.in, swap_set.out);
    sequence.exchanges.push_back(swap_set);
  }
  return sequence;
}

std::vector<Heuristic> heuristics(const SearchOptions& options) {
  std::vector<Heuristic> all;
  for (const bool keep_pinned : {true, false}) {
    if (!keep_pinned && options.pinned.empty()) break;
    for (const bool by_level : {true, false}) all.push_back({by_level, 0, keep_pinned});
  }
  return all;
}

ExchangeSequence best_by_heuristic(const CircuitScheduler& scheduler, const SearchOptions& options) {
  ExchangeSequence best;
  best.cost = std::numeric_limits<double>::infinity();
  for (const Heuristic& heuristic : heuristics(options)) {
    ExchangeSequence sequence = follow(scheduler, heuristic, options, best.cost);
    if (sequence.cost < best.cost) best = std::move(sequence);
  }
  return best;
}

std::vector<SwapSet> alternatives(const CircuitScheduler& scheduler, const SearchOptions& options) {
  std::vector<SwapSet> all;
  const auto remote = static_cast<int>(std::count(scheduler.remote().begin(), scheduler.remote().end(), true));
  for (Heuristic heuristic : heuristics(options)) {
    for (int swaps = 0; swaps <= remote; ++swaps) {
      heuristic.swaps = swaps;
      SwapSet swap_set = choose_swaps(scheduler, heuristic, options);
      if (std::find(all.begin(), all.end(), swap_set) == all.end()) all.push_back(std::move(swap_set));
    }
  }
  return all;
}

}  // namespace

double cost_of(std::size_t swaps) { return 1 - std::ldexp(1.0, -static_cast<int>(swaps)); }

SwapSet choose_swaps(const CircuitScheduler& scheduler, const Heuristic& heuristic, const SearchOptions& options) {
  const Candidates candidates = candidates_of(scheduler, heuristic, options);
  std::size_t swaps = candidates.needed;
  const std::size_t most = std::min(candidates.in.size(), candidates.out.size());
  if (heuristic.swaps > 0) {
    swaps = std::max(swaps, std::min<std::size_t>(static_cast<std::size_t>(heuristic.swaps), most));
  } else {
    while (swaps < most && distance(scheduler, candidates.in[swaps], heuristic.by_level) <
                               distance(scheduler, candidates.out[swaps], heuristic.by_level)) {
      ++swaps;
    }
  }
  const auto count = static_cast<std::ptrdiff_t>(swaps);
  return {{candidates.in.begin(), candidates.in.begin() + count},
          {candidates.out.begin(), candidates.out.begin() + count}};
}

ExchangeSequence search_exchanges(CircuitScheduler scheduler, const SearchOptions& options) {
  scheduler.run();
  ExchangeSequence best = best_by_heuristic(scheduler, options);
  std::int64_t budget = options.budget;
  // At each exchange, follow every alternative to the end of the circuit by the heuristics. Keep the best sequence
  // until a cheaper one is found.
  ExchangeSequence done;
  for (std::size_t step = 0; !scheduler.finished(); ++step) {
    if (budget > 0) {
      for (const SwapSet& swap_set : alternatives(scheduler, options)) {
        CircuitScheduler ahead = scheduler;
        ahead.exchange(swap_set.in, swap_set.out);
        const double so_far = done.cost + cost_of(swap_set, options);
        budget -= steps_of(scheduler.dependencies()) * static_cast<std::int64_t>(heuristics(options).size());
        ExchangeSequence rest = best_by_heuristic(ahead, options);
        if (so_far + rest.cost >= best.cost - 1e-12) continue;
        best = done;
        best.exchanges.push_back(swap_set);
        best.exchanges.insert(best.exchanges.end(), rest.exchanges.begin(), rest.exchanges.end());
        best.cost = so_far + rest.cost;
      }
    }
    const SwapSet& swap_set = best.exchanges[step];
    done.exchanges.push_back(swap_set);
    done.cost += cost_of(swap_set, options);
    scheduler.exchange(swap_set.in, swap_set.out);
    scheduler.run();
  }
  return done;
}

std::vector<bool> first_remote_wires(const Dependencies& dependencies, int wires, int rank_bits,
                                     const SearchOptions& options) {
  const auto count = static_cast<std::size_t>(wires);
  std::vector<std::vector<bool>> starts;
  const auto add = [&](const std::vector<int>& order) {
    std::vector<bool> remote(count, false);
    for (int i = 0; i < rank_bits; ++i) remote[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
    if (std::find(starts.begin(), starts.end(), remote) == starts.end()) starts.push_back(std::move(remote));
  };
  const CircuitScheduler initial(dependencies, std::vector<bool>(count, true));
  for (const bool by_level : {true, false}) {
    std::vector<int> order(count);
    std::iota(order.rbegin(), order.rend(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return distance(initial, a, by_level) > distance(initial, b, by_level); });
    add(order);
  }
  std::vector<int> top(count);
  std::iota(top.rbegin(), top.rend(), 0);
  add(top);

  std::int64_t budget = options.budget;
  const auto cost = [&](const std::vector<bool>& remote, double give_up) {
    budget -= steps_of(dependencies);
    SearchOptions free = options;
    free.pinned.clear();  // the pinned wires are chosen after this
    return follow(CircuitScheduler(dependencies, remote), {true, 0, false}, free, give_up).cost;
  };
  std::vector<bool> best;
  double best_cost = std::numeric_limits<double>::infinity();
  for (const auto& start : starts) {
    const double found = cost(start, best_cost);
    if (found < best_cost) {
      best = start;
      best_cost = found;
    }
  }
  // Exchange one remote wire for one local wire as long as that lowers the cost.
  for (bool better = true; better && budget > 0 && best_cost > 0;) {
    better = false;
    for (std::size_t a = 0; a < count && budget > 0; ++a) {
      for (std::size_t b = 0; b < count && budget > 0; ++b) {
        if (!best[a] || best[b]) continue;
        std::vector<bool> other = best;
        other[a] = false;
        other[b] = true;
        const double found = cost(other, best_cost);
        if (found >= best_cost - 1e-12) continue;
        best = std::move(other);
        best_cost = found;
        better = true;
      }
    }
  }
  return best;
}

}  // namespace onehop::quantum::detail
