#include "machine/mapping/host_distance.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "onehop/error.h"
#include "src/base/checked.h"
#include "src/base/text.h"

namespace onehop {

namespace {

std::string text(std::int64_t number) { return std::to_string(number); }

void check_groups(const HostLayout& layout) {
  for (const std::int64_t group : layout.groups) {
    if (group < 1 || group > max_ranks) {
      throw BadInput("map: expected groups of 1 to " + text(max_ranks) + " units, found " + text(group));
    }
  }
  if (layout.groups.size() > 8) {
    throw BadInput("map: expected at most 8 levels of groups, found " + text(static_cast<int>(layout.groups.size())));
  }
  const std::size_t borders = layout.groups.size() + 1;
  if (!layout.costs.empty() && layout.costs.size() != borders) {
    throw BadInput("map: expected " + base::counted(static_cast<std::int64_t>(borders), "cost") +
                   ", one for hosts and one per level of groups, found " +
                   text(static_cast<std::int64_t>(layout.costs.size())));
  }
  for (const std::int64_t cost : layout.costs) {
    if (cost < 1 || cost > 1'000'000) {
      throw BadInput("map: expected costs from 1 to 1000000, found " + text(cost));
    }
  }
}

void check_torus(const HostLayout& layout) {
  if (layout.torus.empty()) return;
  std::int64_t product = 1;
  for (const std::int64_t extent : layout.torus) {
    if (extent < 1) throw BadInput("map: expected a torus with extents of 1 or more, found " + text(extent));
    product = detail::checked_multiply(product, extent, "the number of hosts of the torus");
  }
  if (product < layout.hosts()) {
    throw BadInput("map: expected a torus of at least " + base::counted(layout.hosts(), "host") + ", found " +
                   text(product));
  }
}

}  // namespace

HostLayout HostLayout::of_sizes(std::span<const std::int64_t> sizes) {
  if (sizes.empty()) throw BadInput("map: expected 1 host or more, found 0");
  HostLayout layout;
  std::int64_t ranks = 0;
  for (std::size_t host = 0; host < sizes.size(); ++host) {
    if (sizes[host] < 1) {
      throw BadInput("map: expected 1 rank or more on host " + text(static_cast<std::int64_t>(host)) + ", found " +
                     text(sizes[host]));
    }
    ranks = detail::checked_add(ranks, sizes[host], "the number of ranks of all hosts");
    if (ranks > max_ranks) {
      throw BadInput("map: expected hosts with at most " + text(max_ranks) + " ranks in total, found " + text(ranks) +
                     " or more");
    }
    layout.host_of_rank.insert(layout.host_of_rank.end(), static_cast<std::size_t>(sizes[host]),
                               static_cast<int>(host));
  }
  return layout;
}

HostLayout HostLayout::of_equal(std::int64_t hosts, std::int64_t per_host) {
  if (hosts < 1) throw BadInput("map: expected 1 host or more, found " + text(hosts));
  if (per_host < 1) throw BadInput("map: expected 1 rank per host or more, found " + text(per_host));
  const std::int64_t ranks = detail::checked_multiply(hosts, per_host, "the number of ranks of all hosts");
  if (ranks > max_ranks) {
    throw BadInput("map: expected hosts with at most " + text(max_ranks) + " ranks in total, found " + text(ranks));
  }
  const std::vector<std::int64_t> sizes(static_cast<std::size_t>(hosts), per_host);
  return of_sizes(sizes);
}

HostLayout HostLayout::of_group(const Group& group) {
  const int first = group.local_ranks().front();
  std::map<int, int> host_of;  // by the first rank of the host
  HostLayout layout;
  for (const std::span<const std::byte> each : group.allgather(std::as_bytes(std::span(&first, 1)))) {
    int theirs = 0;
    if (each.size() != sizeof theirs) throw BadInput("map: expected a first rank of 4 bytes from every rank");
    std::memcpy(&theirs, each.data(), sizeof theirs);
    layout.host_of_rank.push_back(host_of.try_emplace(theirs, static_cast<int>(host_of.size())).first->second);
  }
  return layout;
}

int HostLayout::hosts() const { return host_of_rank.empty() ? 0 : *std::ranges::max_element(host_of_rank) + 1; }

void HostLayout::check() const {
  if (host_of_rank.empty()) throw BadInput("map: expected 1 host or more, found 0");
  if (host_of_rank.size() > static_cast<std::size_t>(max_ranks)) {
    throw BadInput("map: expected at most " + text(max_ranks) + " ranks, found " +
                   text(static_cast<std::int64_t>(host_of_rank.size())));
  }
  for (std::size_t rank = 0; rank < host_of_rank.size(); ++rank) {
    if (host_of_rank[rank] < 0 || host_of_rank[rank] >= max_ranks) {
      throw BadInput("map: expected hosts numbered from 0 to " + text(max_ranks - 1) + ", found " +
                     text(host_of_rank[rank]) + " for rank " + text(static_cast<std::int64_t>(rank)));
    }
  }
  check_groups(*this);
  check_torus(*this);
}

namespace detail {

HostDistance::HostDistance(const HostLayout& layout)
    : hosts_(layout.hosts()), costs_(layout.costs), torus_(layout.torus) {
  std::int64_t unit = 1;
  for (const std::int64_t group : layout.groups) {
    unit = std::min<std::int64_t>(unit * group, max_ranks);
    units_.push_back(unit);
  }
  if (costs_.empty()) costs_.assign(units_.size() + 1, 1);
  flat_ = std::ranges::all_of(costs_, [&](std::int64_t cost) { return cost == costs_.front(); });
}

std::int64_t HostDistance::hops(int a, int b) const {
  std::int64_t hops = 0;
  std::int64_t from = a;
  std::int64_t to = b;
  for (std::size_t d = torus_.size(); d-- > 0;) {
    const std::int64_t extent = torus_[d];
    const std::int64_t apart = std::abs(from % extent - to % extent);
    hops += std::min(apart, extent - apart);
    from /= extent;
    to /= extent;
  }
  return hops;
}

std::int64_t HostDistance::largest_cost() const { return *std::ranges::max_element(costs_); }

std::vector<std::int64_t> host_sizes(std::span<const int> host_of_rank, int hosts) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(hosts), 0);
  for (const int host : host_of_rank) ++sizes[static_cast<std::size_t>(host)];
  return sizes;
}

}  // namespace detail

}  // namespace onehop
