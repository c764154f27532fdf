#include "quantum/state/sampling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "onehop/error.h"
#include "quantum/circuit/random.h"
#include "quantum/device/device_amplitudes.h"
#include "quantum/state/precision.h"
#include "quantum/state/sorted_order.h"
#include "quantum/state/state_impl.h"
#include "src/base/text.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {
namespace {

constexpr std::uint64_t sampling_events = std::uint64_t{1} << 40;  // beyond the events of measurements in a circuit
constexpr int later_qubits = 4;                                    // qubits per step after the first step
constexpr std::size_t max_at_once = std::size_t{1} << 15;          // prefixes per sum over the ranks

// The weights of the 2^k values of k qubits as a binary tree of sums. Node 1 is the root; node i has the children 2i,
// with the next qubit 0, and 2i + 1. The highest qubit comes first.
class Tree {
 public:
  void set(std::span<const double> weights) {
    size_ = weights.size();
    nodes_.resize(2 * size_);
    std::copy(weights.begin(), weights.end(), nodes_.begin() + static_cast<std::ptrdiff_t>(size_));
    for (std::size_t i = size_ - 1; i > 0; --i) nodes_[i] = nodes_[2 * i] + nodes_[2 * i + 1];
  }

  // Draws a value for a shot, with the random numbers of these events.
  [[nodiscard]] std::uint64_t draw(std::uint64_t seed, std::uint64_t shot, const std::uint64_t* events) const {
    std::size_t node = 1;
    for (; node < size_; ++events) node = child(node, detail::uniform(seed, shot, *events));
    return node - size_;
  }

  // The same for many shots. Several descend the tree in lockstep, which hides the latency of memory if the tree is
  // larger than a cache.
  void draw_many(std::uint64_t seed, std::span<const std::uint64_t> shots, const std::uint64_t* events,
                 std::span<std::uint64_t> out) const {
    constexpr std::size_t lockstep = 16;
    for (std::size_t begin = 0; begin < shots.size(); begin += lockstep) {
      const std::size_t count = std::min(lockstep, shots.size() - begin);
      std::size_t nodes[lockstep];
      std::fill_n(nodes, count, 1);
      for (const std::uint64_t* event = events; nodes[0] < size_; ++event) {  // all nodes have the same depth
        for (std::size_t k = 0; k < count; ++k) {
          nodes[k] = child(nodes[k], detail::uniform(seed, shots[begin + k], *event));
          __builtin_prefetch(nodes_.data() + 2 * std::min(nodes[k], size_ - 1));
        }
      }
      for (std::size_t k = 0; k < count; ++k) out[begin + k] = nodes[k] - size_;
    }
  }

 private:
  [[nodiscard]] std::size_t child(std::size_t node, double draw) const {
    const double one = nodes_[2 * node + 1];
    const double all = nodes_[2 * node] + one;
    return 2 * node + (draw * all < one ? 1 : 0);
  }

  std::size_t size_ = 0;
  std::vector<double> nodes_;
};

// The progress of sampling: the first `decided` qubits in `order` have values for each shot.
struct Deciding {
  std::vector<int> order;             // the qubits in the order of their draws
  std::vector<std::uint64_t> events;  // of their draws
  std::size_t decided = 0;
  std::vector<std::uint64_t> values;  // for each shot; bit 0 is the value of the last decided qubit
};

// Sums probabilities over this rank's amplitudes with given values of the decided qubits and of `further` qubits.
class Places {
 public:
  Places(const State& state, const Deciding& deciding, std::size_t further) : state_(&state) {
    const int local = state.local_bits();
    free_ = (std::uint64_t{1} << local) - 1;
    for (std::size_t i = 0; i < deciding.decided + further; ++i) {
      const int bit = state.bits()[static_cast<std::size_t>(deciding.order[i])];
      (i < deciding.decided ? decided_ : further_).push_back(bit);
      if (bit < local) free_ &= ~(std::uint64_t{1} << bit);
    }
    for (std::uint64_t v = 0; v < std::uint64_t{1} << further; ++v) offsets_.push_back(scatter(v, further_));
    window_ = (std::uint64_t{1} << state.window_bits()) - 1;
    rank_bits_ = ~((std::uint64_t{1} << local) - 1);
    held_ = ((static_cast<std::uint64_t>(state.group().rank()) << local) ^ state.flips()) & rank_bits_;
    rank_decided_ = scatter(~std::uint64_t{0}, decided_) & rank_bits_;
    rank_further_ = scatter(~std::uint64_t{0}, further_) & rank_bits_;
  }

  // Orders the numbers of prefixes by the windows of amplitudes that they need: calls
  // visit(amplitudes, first place, some numbers) for each window.
  template <typename T, typename Visit>
  void for_windows(std::span<const std::uint64_t> prefixes, const Visit& visit) const {
    const std::uint64_t beyond = scatter(~std::uint64_t{0}, decided_) & ~rank_bits_ & ~window_;
    std::map<std::uint64_t, std::vector<std::size_t>> by_bits;
    for (std::size_t p = 0; p < prefixes.size(); ++p) by_bits[scatter(prefixes[p], decided_) & beyond].push_back(p);
    std::vector<std::complex<T>> memory;
    for (std::uint64_t first = 0; first >> state_->local_bits() == 0; first += window_ + 1) {
      const auto found = by_bits.find(first & beyond);
      if (found == by_bits.end()) continue;
      visit(state_->piece<T>(first, window_ + 1, memory), first, std::span<const std::size_t>(found->second));
    }
  }

  // As `add_probabilities` for all prefixes of amplitudes on a device, all at once.
  void on_device(std::span<const std::uint64_t> prefixes, std::span<double> out) const {
    std::vector<std::uint64_t> places;
    std::vector<std::size_t> at;
    for (std::size_t p = 0; p < prefixes.size(); ++p) {
      const std::uint64_t place = scatter(prefixes[p], decided_);
      if (((place ^ held_) & rank_decided_) != 0) continue;
      for (std::size_t v = 0; v < offsets_.size(); ++v) {
        if (((offsets_[v] ^ held_) & rank_further_) != 0) continue;
        places.push_back((place | offsets_[v]) & ~rank_bits_);
        at.push_back(p * offsets_.size() + v);
      }
    }
    std::vector<double> found(places.size());
    state_->on_device()->weights(places, ~free_ & ~rank_bits_, found);
    for (std::size_t i = 0; i < at.size(); ++i) out[at[i]] = found[i];
  }

  // Adds to out[v] the probability, in a window, that the decided qubits have the value `prefix` and the further ones
  // the value v.
  template <typename Amplitudes>
  void add_probabilities(Amplitudes amplitudes, std::uint64_t first, std::uint64_t prefix,
                         std::span<double> out) const {
    const std::uint64_t place = scatter(prefix, decided_);
    if (((place ^ held_) & rank_decided_) != 0) return;
    const std::uint64_t beyond = ~rank_bits_ & ~window_ & ~free_;
    for (std::size_t v = 0; v < out.size(); ++v) {
      if (((offsets_[v] ^ held_) & rank_further_) != 0) continue;
      const std::uint64_t all = place | offsets_[v];
      if (((all ^ first) & beyond) == 0) out[v] += sum(amplitudes, all & window_);
    }
  }

 private:
  // Moves the lowest bit of the value to the last of the bits, and so on.
  [[nodiscard]] static std::uint64_t scatter(std::uint64_t value, const std::vector<int>& bits) {
    std::uint64_t place = 0;
    for (std::size_t i = bits.size(); i-- > 0; value >>= 1) place |= (value & 1U) << bits[i];
    return place;
  }

  template <typename Amplitudes>
  [[nodiscard]] double sum(Amplitudes amplitudes, std::uint64_t place) const {
    const std::uint64_t free = free_ & window_;
    double total = 0;
    for (std::uint64_t part = 0;;) {
      const auto& a = amplitudes[place | part];
      const double re = a.real();
      const double im = a.imag();
      total += re * re + im * im;
      part = (part - free) & free;
      if (part == 0) return total;
    }
  }

  const State* state_;
  std::vector<int> decided_;  // bits, the highest qubit first
  std::vector<int> further_;
  std::vector<std::uint64_t> offsets_;  // the bits of each value of the further qubits
  std::uint64_t free_ = 0;
  std::uint64_t window_ = 0;  // the bits inside a window
  std::uint64_t rank_bits_ = 0;
  std::uint64_t held_ = 0;  // the values of the qubits on rank bits
  std::uint64_t rank_decided_ = 0;
  std::uint64_t rank_further_ = 0;
};

// Passes keep the norm. In a file or encoded, amplitudes also change by what no gate does: a disk that returns other
// bytes, or another program that writes to the file.
void require_norm(const State& state, std::span<const double> probabilities) {
  if (!state.is_stored() && !is_encoded(state.precision())) return;
  constexpr double tolerance = 0.01;
  const double sum = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  if (std::abs(sum - 1) <= tolerance) return;  // not so for NaN
  throw Error("expected probabilities that add up to 1, found " + base::number_text(sum) + ": the amplitudes " +
              (state.is_stored() ? "in the file of the state" : "in memory") +
              " were altered while the program ran; run it again" +
              (state.is_stored() ? ", with the state in a folder on another disk" : ""));
}

void decide_first(const State& state, Deciding& deciding, std::span<const std::uint64_t> shots, std::uint64_t seed) {
  // Every step reads a state in a file again.
  const int most = state.is_stored() ? 20 : std::clamp(static_cast<int>(std::bit_width(shots.size())) + 2, 12, 20);
  const std::size_t count = std::min(deciding.order.size(), static_cast<std::size_t>(most));
  std::vector<int> lowest_first(deciding.order.begin(), deciding.order.begin() + static_cast<std::ptrdiff_t>(count));
  std::reverse(lowest_first.begin(), lowest_first.end());
  Tree tree;
  const std::vector<double> probabilities = state.probabilities(lowest_first);
  require_norm(state, probabilities);
  tree.set(probabilities);
  base::parallel_for(state.engine().threads, shots.size(), 4096, [&](std::uint64_t begin, std::uint64_t end) {
    tree.draw_many(seed, shots.subspan(begin, end - begin), deciding.events.data(),
                   std::span(deciding.values).subspan(begin, end - begin));
  });
  deciding.decided = count;
}

// Decides the next `count` qubits of the shots in `sorted`, which are ordered by their prefixes.
void decide_some(const State& state, Deciding& deciding, std::span<const std::uint64_t> shots, std::uint64_t seed,
                 std::size_t count, std::span<const std::uint32_t> sorted) {
  std::vector<std::uint64_t> prefixes;
  std::vector<std::size_t> starts;  // for each prefix: the position of its first shot in `sorted`
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    const std::uint64_t prefix = deciding.values[sorted[k]];
    if (!prefixes.empty() && prefixes.back() == prefix) continue;
    prefixes.push_back(prefix);
    starts.push_back(k);
  }
  starts.push_back(sorted.size());
  constexpr std::uint64_t grain = 256;
  const int threads = state.engine().threads;
  const std::size_t values = std::size_t{1} << count;
  const Places places(state, deciding, count);
  std::vector<double> weights(prefixes.size() * values);
  if (state.on_device() != nullptr) places.on_device(prefixes, weights);
  with_type(state.precision(), [&]<typename T>() {
    if (state.on_device() != nullptr) return;
    places.for_windows<T>(prefixes, [&](auto amplitudes, std::uint64_t first, std::span<const std::size_t> some) {
      base::parallel_for(threads, some.size(), grain, [&](std::uint64_t begin, std::uint64_t end) {
        for (const std::size_t p : some.subspan(begin, end - begin)) {
          places.add_probabilities(amplitudes, first, prefixes[p], std::span(weights).subspan(p * values, values));
        }
      });
    });
  });
  sum_over_ranks(state.group(), weights);
  base::parallel_for(threads, prefixes.size(), grain, [&](std::uint64_t begin, std::uint64_t end) {
    Tree tree;
    for (std::uint64_t p = begin; p < end; ++p) {
      tree.set(std::span(weights).subspan(p * values, values));
      for (const std::uint32_t i : sorted.subspan(starts[p], starts[p + 1] - starts[p])) {
        deciding.values[i] =
            deciding.values[i] << count | tree.draw(seed, shots[i], deciding.events.data() + deciding.decided);
      }
    }
  });
}

void decide_next(const State& state, Deciding& deciding, std::span<const std::uint64_t> shots, std::uint64_t seed) {
  const std::size_t count = std::min<std::size_t>(state.is_stored() ? 2 * later_qubits : later_qubits,
                                                  deciding.order.size() - deciding.decided);
  const std::vector<std::uint32_t> sorted = sorted_order(deciding.values);
  for (std::size_t begin = 0; begin < sorted.size();) {
    // Take whole groups of equal prefixes, at most max_at_once of them.
    std::size_t end = begin;
    for (std::size_t groups = 0; end < sorted.size(); ++end) {
      if (end != begin && deciding.values[sorted[end]] == deciding.values[sorted[end - 1]]) continue;
      if (++groups > max_at_once) break;
    }
    decide_some(state, deciding, shots, seed, count, std::span(sorted).subspan(begin, end - begin));
    begin = end;
  }
  deciding.decided += count;
}

}  // namespace

double draw_number(std::uint64_t seed, std::uint64_t shot, std::uint64_t event, bool at_end) {
  return detail::uniform(seed, shot, at_end ? sampling_events + event : event);
}

std::vector<std::uint64_t> sample(const State& state, std::span<const int> qubits, std::span<const std::uint64_t> shots,
                                  std::uint64_t seed, std::span<const int> draws) {
  Deciding deciding;
  std::vector<std::pair<std::int64_t, int>> order;  // the draw or the negative qubit, and the qubit
  for (std::size_t i = 0; i < qubits.size(); ++i) order.emplace_back(draws.empty() ? -qubits[i] : draws[i], qubits[i]);
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) {
    deciding.order.push_back(order[i].second);
    deciding.events.push_back(sampling_events + (draws.empty() ? i : static_cast<std::uint64_t>(order[i].first)));
  }
  deciding.values.assign(shots.size(), 0);
  if (qubits.empty() || shots.empty()) return deciding.values;
  decide_first(state, deciding, shots, seed);
  while (deciding.decided < deciding.order.size()) decide_next(state, deciding, shots, seed);
  // Convert from the order of decisions to the order of `qubits`.
  std::vector<int> position;
  for (const int qubit : qubits) {
    const auto at = std::find(deciding.order.begin(), deciding.order.end(), qubit) - deciding.order.begin();
    position.push_back(static_cast<int>(deciding.order.size()) - 1 - static_cast<int>(at));
  }
  for (std::uint64_t& value : deciding.values) {
    std::uint64_t asked = 0;
    for (std::size_t i = 0; i < position.size(); ++i) asked |= (value >> position[i] & 1U) << i;
    value = asked;
  }
  return deciding.values;
}

}  // namespace onehop::quantum
