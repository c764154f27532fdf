// The choice of exchanges: which wires become local, and which become remote, when every remaining operation is
// blocked. A greedy heuristic chooses a single exchange; a search over sequences of exchanges improves on it.
#pragma once

#include <cstdint>
#include <vector>

#include "quantum/placement/circuit_scheduler.h"

namespace onehop::quantum::detail {

// One exchange: the wires that change places.
struct SwapSet {
  std::vector<int> in;   // remote wires that become local
  std::vector<int> out;  // local wires that become remote, as many as `in`
  friend bool operator==(const SwapSet&, const SwapSet&) = default;
};

// Heuristic for choosing an exchange. Bring in the wires of the first blocked operation, and further wires as long as
// each is needed sooner than the wire it evicts. Evict the wire whose next use is furthest away (Belady's rule).
struct Heuristic {
  bool by_level = false;  // measure "sooner" by Dependencies::level instead of the position in the program
  int swaps = 0;          // 0: as many wires as the heuristic gives; else this many, if there are that many candidates
  bool keep_pinned = false;  // evict the wires in SearchOptions::pinned last
};

struct SearchOptions {
  std::int64_t budget = 0;   // the number of scheduler steps that the search may spend
  std::vector<bool> pinned;  // wires that should stay local: those on the lowest bits, inside a cache line; empty: none
};

// The cost of an exchange of this many bits: the fraction of a rank's amplitudes that it sends.
[[nodiscard]] double cost_of(std::size_t swaps);

// Chooses one exchange for a scheduler whose remaining operations are all blocked.
[[nodiscard]] SwapSet choose_swaps(const CircuitScheduler& scheduler, const Heuristic& heuristic,
                                   const SearchOptions& options);

// All exchanges from a point of the circuit to its end.
struct ExchangeSequence {
  std::vector<SwapSet> exchanges;
  double cost = 0;
};

// Searches for a cheap sequence of exchanges to the end of the circuit. With a budget of 0 it is the best one that a
// heuristic gives.
[[nodiscard]] ExchangeSequence search_exchanges(CircuitScheduler scheduler, const SearchOptions& options);

// Chooses which wires are remote at the beginning, when the placement is free to choose. Returns one flag for each
// wire.
[[nodiscard]] std::vector<bool> first_remote_wires(const Dependencies& dependencies, int wires, int rank_bits,
                                                   const SearchOptions& options);

}  // namespace onehop::quantum::detail
