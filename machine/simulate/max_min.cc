#include "machine/simulate/max_min.h"

#include <algorithm>

namespace onehop::detail {
namespace {

// Shares that differ by rounding only are equal.
constexpr double alike = 1 + 1e-12;

}  // namespace

void MaxMin::set_bandwidth(std::uint32_t link, double bandwidth) {
  if (link >= bandwidth_.size()) {
    bandwidth_.resize(link + std::size_t{1});
    left_.resize(bandwidth_.size());
    load_.resize(bandwidth_.size());
    flows_first_.resize(bandwidth_.size());
    flows_last_.resize(bandwidth_.size());
  }
  bandwidth_[link] = bandwidth;
}

// Fills the lists of the links in use and of the flows on each.
void MaxMin::collect(const FlowTable& flows, const std::vector<std::uint32_t>& active) {
  links_.clear();
  std::size_t total = 0;
  for (const std::uint32_t flow : active) {
    for (std::size_t u = flows.first[flow]; u < flows.last[flow]; ++u) {
      const Use& use = flows.uses[u];
      if (load_[use.link] == 0) {
        links_.push_back(use.link);
        left_[use.link] = bandwidth_[use.link];
        flows_last_[use.link] = 0;
      }
      load_[use.link] += use.weight;
      ++flows_last_[use.link];  // counts at first
    }
    total += flows.last[flow] - flows.first[flow];
  }
  flows_of_.resize(total);
  std::size_t next = 0;
  for (const std::uint32_t link : links_) {
    flows_first_[link] = next;
    next += flows_last_[link];
    flows_last_[link] = flows_first_[link];
  }
  for (const std::uint32_t flow : active) {
    for (std::size_t u = flows.first[flow]; u < flows.last[flow]; ++u) {
      flows_of_[flows_last_[flows.uses[u].link]++] = flow;
    }
  }
}

void MaxMin::fix(const FlowTable& flows, std::uint32_t flow, double value, std::vector<double>& rate) {
  // Rounding must not leave a flow without any bandwidth.
  value = std::max(value, flows.limit[flow] * 1e-12);
  rate[flow] = value;
  for (std::size_t u = flows.first[flow]; u < flows.last[flow]; ++u) {
    const Use& use = flows.uses[u];
    left_[use.link] = std::max(0.0, left_[use.link] - use.weight * value);
    load_[use.link] -= use.weight;
  }
}

void MaxMin::solve(const FlowTable& flows, const std::vector<std::uint32_t>& active, std::vector<double>& rate) {
  collect(flows, active);
  for (const std::uint32_t flow : active) rate[flow] = -1;
  by_limit_ = active;
  const auto greater_limit = [&](std::uint32_t a, std::uint32_t b) { return flows.limit[a] > flows.limit[b]; };
  const auto is_sorted = std::is_sorted(by_limit_.begin(), by_limit_.end(), greater_limit);
  if (!is_sorted) std::sort(by_limit_.begin(), by_limit_.end(), greater_limit);
  heap_.clear();
  for (const std::uint32_t link : links_) heap_.push_back({left_[link] / load_[link], link});
  std::make_heap(heap_.begin(), heap_.end());
  std::size_t growing = active.size();
  while (growing > 0) {
    while (!by_limit_.empty() && rate[by_limit_.back()] >= 0) by_limit_.pop_back();
    const double limit = flows.limit[by_limit_.back()];
    if (heap_.empty() || limit <= heap_.front().share) {
      // A share in the heap may be out of date, but then the true one is greater.
      fix(flows, by_limit_.back(), limit, rate);
      --growing;
      continue;
    }
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate top = heap_.back();
    heap_.pop_back();
    // Differences of sums of weights leave rounding errors far below the smallest weight.
    if (load_[top.link] < 1e-9) continue;
    const double share = left_[top.link] / load_[top.link];
    if (share > top.share * alike) {
      heap_.push_back({share, top.link});
      std::push_heap(heap_.begin(), heap_.end());
      continue;
    }
    for (std::size_t i = flows_first_[top.link]; i < flows_last_[top.link]; ++i) {
      const std::uint32_t flow = flows_of_[i];
      if (rate[flow] >= 0) continue;
      fix(flows, flow, top.share, rate);
      --growing;
    }
    load_[top.link] = 0;
  }
  for (const std::uint32_t link : links_) load_[link] = 0;
}

}  // namespace onehop::detail
