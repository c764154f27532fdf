#include "quantum/placement/swap_set.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace onehop::quantum::detail {
namespace {

constexpr int never = std::numeric_limits<int>::max();

int distance(const Walk& walk, int wire, bool by_level) {
  const int index = walk.next_need(wire);
  if (index < 0) return never;
  return by_level ? walk.dependencies().level[static_cast<std::size_t>(index)] : index;
}

// The operation that waits and comes first.
int first_blocked(const Walk& walk, bool by_level) {
  const auto& blocked = walk.blocked();
  const auto& level = walk.dependencies().level;
  return *std::min_element(blocked.begin(), blocked.end(), [&](int a, int b) {
    const auto la = by_level ? level[static_cast<std::size_t>(a)] : 0;
    const auto lb = by_level ? level[static_cast<std::size_t>(b)] : 0;
    return la != lb ? la < lb : a < b;
  });
}

struct Candidates {
  std::vector<int> in;   // soonest first; the first `needed` are what the first operation waits for
  std::vector<int> out;  // latest first
  std::size_t needed = 0;
};

Candidates candidates_of(const Walk& walk, const Rule& rule, const SearchOptions& options) {
  Candidates result;
  const int first = first_blocked(walk, rule.by_level);
  const auto& local = walk.dependencies().structures[static_cast<std::size_t>(first)].local;
  const auto is_needed = [&](int wire) { return std::find(local.begin(), local.end(), wire) != local.end(); };
  const int wires = static_cast<int>(walk.remote().size());
  std::vector<int> key(static_cast<std::size_t>(wires));
  for (int wire = 0; wire < wires; ++wire) {
    key[static_cast<std::size_t>(wire)] = distance(walk, wire, rule.by_level);
    if (!walk.remote()[static_cast<std::size_t>(wire)]) {
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
    return rule.kept != 0 && !options.pinned.empty() && options.pinned[static_cast<std::size_t>(wire)];
  };
  std::sort(result.out.begin(), result.out.end(), [&](int a, int b) {
    if (kept(a) != kept(b)) return kept(b);
    return at(a) != at(b) ? at(a) > at(b) : a > b;
  });
  return result;
}

std::int64_t steps_of(const Dependencies& dependencies) { return static_cast<std::int64_t>(dependencies.size()) + 1; }

double cost_of(const Choice& choice, const SearchOptions& options) {
  const bool low = std::any_of(choice.out.begin(), choice.out.end(), [&](int wire) {
    return !options.pinned.empty() && options.pinned[static_cast<std::size_t>(wire)];
  });
  // Moving parts of cache lines takes about twice as long within a machine, and nothing more between machines.
  return detail::cost_of(choice.in.size()) * (low ? 1.15 : 1);
}

// To the end of the circuit by one rule.
Course follow(Walk walk, const Rule& rule, const SearchOptions& options, double give_up) {
  Course course;
  while (walk.run(), !walk.finished()) {
    const Choice choice = choose(walk, rule, options);
    course.cost += cost_of(choice, options);
    if (course.cost >= give_up) break;
    walk.exchange(choice.in, choice.out);
    course.choices.push_back(choice);
  }
  return course;
}

std::vector<Rule> rules(const SearchOptions& options) {
  std::vector<Rule> all;
  for (const int kept : {1, 0}) {
    if (kept == 0 && options.pinned.empty()) break;
    for (const bool by_level : {true, false}) all.push_back({by_level, 0, kept});
  }
  return all;
}

Course best_by_rule(const Walk& walk, const SearchOptions& options) {
  Course best;
  best.cost = std::numeric_limits<double>::infinity();
  for (const Rule& rule : rules(options)) {
    Course course = follow(walk, rule, options, best.cost);
    if (course.cost < best.cost) best = std::move(course);
  }
  return best;
}

std::vector<Choice> alternatives(const Walk& walk, const SearchOptions& options) {
  std::vector<Choice> all;
  const auto remote = static_cast<int>(std::count(walk.remote().begin(), walk.remote().end(), true));
  for (Rule rule : rules(options)) {
    for (int swaps = 0; swaps <= remote; ++swaps) {
      rule.swaps = swaps;
      Choice choice = choose(walk, rule, options);
      if (std::find(all.begin(), all.end(), choice) == all.end()) all.push_back(std::move(choice));
    }
  }
  return all;
}

}  // namespace

double cost_of(std::size_t swaps) { return 1 - std::ldexp(1.0, -static_cast<int>(swaps)); }

Choice choose(const Walk& walk, const Rule& rule, const SearchOptions& options) {
  const Candidates candidates = candidates_of(walk, rule, options);
  std::size_t swaps = candidates.needed;
  const std::size_t most = std::min(candidates.in.size(), candidates.out.size());
  if (rule.swaps > 0) {
    swaps = std::max(swaps, std::min<std::size_t>(static_cast<std::size_t>(rule.swaps), most));
  } else {
    while (swaps < most &&
           distance(walk, candidates.in[swaps], rule.by_level) < distance(walk, candidates.out[swaps], rule.by_level)) {
      ++swaps;
    }
  }
  const auto count = static_cast<std::ptrdiff_t>(swaps);
  return {{candidates.in.begin(), candidates.in.begin() + count},
          {candidates.out.begin(), candidates.out.begin() + count}};
}

Course course_of(Walk walk, const SearchOptions& options) {
  walk.run();
  Course best = best_by_rule(walk, options);
  std::int64_t budget = options.budget;
  // At each exchange every alternative is followed to the end by rule; what was best so far stays until something is better.
  Course done;
  for (std::size_t step = 0; !walk.finished(); ++step) {
    if (budget > 0) {
      for (const Choice& choice : alternatives(walk, options)) {
        Walk ahead = walk;
        ahead.exchange(choice.in, choice.out);
        const double so_far = done.cost + cost_of(choice, options);
        budget -= steps_of(walk.dependencies()) * static_cast<std::int64_t>(rules(options).size());
        Course rest = best_by_rule(ahead, options);
        if (so_far + rest.cost >= best.cost - 1e-12) continue;
        best = done;
        best.choices.push_back(choice);
        best.choices.insert(best.choices.end(), rest.choices.begin(), rest.choices.end());
        best.cost = so_far + rest.cost;
      }
    }
    const Choice& choice = best.choices[step];
    done.choices.push_back(choice);
    done.cost += cost_of(choice, options);
    walk.exchange(choice.in, choice.out);
    walk.run();
  }
  return done;
}

std::vector<bool> first_remote(const Dependencies& dependencies, int wires, int rank_bits,
                               const SearchOptions& options) {
  const auto count = static_cast<std::size_t>(wires);
  std::vector<std::vector<bool>> starts;
  const auto add = [&](const std::vector<int>& order) {
    std::vector<bool> remote(count, false);
    for (int i = 0; i < rank_bits; ++i) remote[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
    if (std::find(starts.begin(), starts.end(), remote) == starts.end()) starts.push_back(std::move(remote));
  };
  const Walk nowhere(dependencies, std::vector<bool>(count, true));
  for (const bool by_level : {true, false}) {
    std::vector<int> order(count);
    std::iota(order.rbegin(), order.rend(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return distance(nowhere, a, by_level) > distance(nowhere, b, by_level); });
    add(order);
  }
  std::vector<int> top(count);
  std::iota(top.rbegin(), top.rend(), 0);
  add(top);

  std::int64_t budget = options.budget;
  const auto cost = [&](const std::vector<bool>& remote, double give_up) {
    budget -= steps_of(dependencies);
    SearchOptions free = options;
    free.pinned.clear();  // which wires are pinned is decided after this
    return follow(Walk(dependencies, remote), {true, 0, 0}, free, give_up).cost;
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
  // One wire against another, as long as that helps.
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
