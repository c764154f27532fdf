// Local search: exchanges positions between hosts to reduce the bytes between hosts.
#pragma once

#include <cstdint>

#include "machine/mapping/published.h"
#include "machine/mapping/traffic.h"

namespace onehop::detail {

struct RefineOptions {
  std::uint64_t seed = 1;
  std::int64_t steps = 0;  // exchanges to propose
  bool anneal = true;      // accept some exchanges that cost more, fewer and fewer of them
  // Of the bytes of the reference's busiest host, which the busiest host may have. `anneal` only.
  std::int64_t busiest_percent = 100;
};

// Every host keeps its number of positions. The result depends on the arguments only: there is no clock in it, and no
// floating-point number. It may cost more than the start if `anneal` is set; compare.
void refine(const Traffic& traffic, const HostDistance& distance, const RefineOptions& options, HostAt& host_at);

// Simulated annealing by moves of single positions, for hosts that are equally far from each other. Hosts have their
// sizes again at the end, and the busiest one aims at no more bytes than that of `reference`. `options.anneal` is
// ignored; the rest is as above.
void anneal(const Traffic& traffic, Sizes sizes, const RefineOptions& options, const HostAt& reference,
            HostAt& host_at);

// Renumbers hosts of equal sizes among each other to reduce the weighted bytes, then the hops on the torus.
void arrange(const Traffic& traffic, const HostDistance& distance, Sizes sizes, HostAt& host_at);

}  // namespace onehop::detail
