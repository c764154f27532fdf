// Which of the equal hosts takes which set of positions.
#include <algorithm>
#include <numeric>
#include <utility>

#include "machine/mapping/refine.h"

namespace onehop::detail {

namespace {

using Score = std::pair<std::int64_t, std::int64_t>;  // weighted bytes, byte-hops

struct Link {
  int to = 0;
  std::int64_t bytes = 0;
};

// Parts of the grid with the bytes between them; part i starts on host i.
class Arrangement {
 public:
  Arrangement(const Traffic& traffic, const HostDistance& distance, Sizes sizes, const HostAt& host_at)
      : distance_(distance), sizes_(sizes), links_(sizes.size()), host_of_(sizes.size()) {
    std::iota(host_of_.begin(), host_of_.end(), 0);
    for (int p = 0; p < traffic.positions(); ++p) {
      const int from = host_at[as_index(p)];
      for (const TrafficEdge& edge : traffic.of(p)) {
        const int to = host_at[as_index(edge.to)];
        if (from != to) links_[as_index(from)].push_back({to, edge.both});
      }
    }
    for (std::vector<Link>& links : links_) merge(links);
  }

  // Tries exchanges of two parts until none helps, or as many as are allowed.
  void improve(std::int64_t most) {
    const std::size_t hosts = sizes_.size();
    if (hosts < 2) return;
    if (static_cast<std::int64_t>(hosts * hosts) / 2 <= most) {
      for (bool better = true; better && most > 0;) {
        better = false;
        for (std::size_t a = 0; a < hosts && most > 0; ++a) {
          for (std::size_t b = a + 1; b < hosts && most > 0; ++b) {
            --most;
            better = exchange(a, b) || better;
          }
        }
      }
      return;
    }
    Random random(1);
    for (; most > 0; --most) (void)exchange(random.below(hosts), random.below(hosts));
  }

  [[nodiscard]] const std::vector<int>& host_of() const noexcept { return host_of_; }

 private:
  static void merge(std::vector<Link>& links) {
    std::ranges::sort(links, {}, &Link::to);
    std::size_t kept = 0;
    for (const Link& link : links) {
      if (kept > 0 && links[kept - 1].to == link.to) {
        links[kept - 1].bytes += link.bytes;
      } else {
        links[kept++] = link;
      }
    }
    links.resize(kept);
  }

  [[nodiscard]] Score score(std::size_t part) const {
    Score sum{0, 0};
    const int here = host_of_[part];
    for (const Link& link : links_[part]) {
      const int there = host_of_[as_index(link.to)];
      sum.first += link.bytes * distance_.cost(here, there);
      if (distance_.has_torus()) sum.second += link.bytes * distance_.hops(here, there);
    }
    return sum;
  }

  bool exchange(std::size_t a, std::size_t b) {
    if (a == b || sizes_[a] != sizes_[b] || sizes_[a] == 0) return false;
    const Score a_before = score(a);
    const Score b_before = score(b);
    std::swap(host_of_[a], host_of_[b]);
    const Score a_after = score(a);
    const Score b_after = score(b);
    if (Score{a_after.first + b_after.first, a_after.second + b_after.second} <
        Score{a_before.first + b_before.first, a_before.second + b_before.second}) {
      return true;
    }
    std::swap(host_of_[a], host_of_[b]);
    return false;
  }

  const HostDistance& distance_;
  Sizes sizes_;
  std::vector<std::vector<Link>> links_;
  std::vector<int> host_of_;
};

}  // namespace

void arrange(const Traffic& traffic, const HostDistance& distance, Sizes sizes, HostAt& host_at) {
  Arrangement arrangement(traffic, distance, sizes, host_at);
  arrangement.improve(400'000);
  for (int& host : host_at) host = arrangement.host_of()[as_index(host)];
}

}  // namespace onehop::detail
