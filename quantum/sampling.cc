#include "sampling.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>

#include "random.h"
#include "state_impl.h"

namespace onehop::quantum {
namespace {

constexpr std::uint64_t sampling_events = std::uint64_t{1} << 40;  // apart from those of measurements inside a circuit
constexpr int later_qubits = 4;                                    // decided together, after the first
constexpr std::size_t most_at_once = std::size_t{1} << 15;         // prefixes whose probabilities are added up together

// Weights of the 2^k values of some qubits as a tree: node 1 is all, the children of i are 2i (the highest qubit 0) and 2i + 1.
class Tree {
 public:
  explicit Tree(std::span<const double> weights) : size_(weights.size()), nodes_(2 * weights.size()) {
    std::copy(weights.begin(), weights.end(), nodes_.begin() + static_cast<std::ptrdiff_t>(size_));
    for (std::size_t i = size_ - 1; i > 0; --i) nodes_[i] = nodes_[2 * i] + nodes_[2 * i + 1];
  }

  // `first` is the number of the first event.
  [[nodiscard]] std::uint64_t draw(std::uint64_t seed, std::uint64_t shot, std::uint64_t first) const {
    std::size_t node = 1;
    for (std::uint64_t event = first; node < size_; ++event) {
      const double one = nodes_[2 * node + 1];
      const double all = nodes_[2 * node] + one;
      node = 2 * node + (detail::uniform(seed, shot, event) * all < one ? 1 : 0);
    }
    return node - size_;
  }

 private:
  std::size_t size_;
  std::vector<double> nodes_;
};

// The qubits in the order of deciding, and how far it has come.
struct Deciding {
  std::vector<int> order;          // of the state's qubits, the highest first
  std::size_t decided = 0;         // how many of them
  std::vector<std::uint64_t> got;  // for each shot: the value of the last decided is its lowest bit
};

// The places of this rank where the decided qubits have the values `prefix`: begin, and the bits that are free.
class Places {
 public:
  Places(const State& state, const Deciding& deciding, std::size_t further) : state_(&state) {
    const int local = state.local_bits();
    free_ = (std::uint64_t{1} << local) - 1;
    for (std::size_t i = 0; i < deciding.decided + further; ++i) {
      const int bit = state.bits()[static_cast<std::size_t>(deciding.order[i])];
      bits_.push_back(bit);
      if (bit < local) free_ &= ~(std::uint64_t{1} << bit);
    }
    // What the bits of the rank's number stand for.
    held_ = (static_cast<std::uint64_t>(state.group().rank()) << local) ^ state.flips();
  }

  // The sum of probabilities where the qubits have the value `value`, the last of them lowest.
  [[nodiscard]] double probability(std::uint64_t value) const {
    std::uint64_t place = 0;
    for (std::size_t i = 0; i < bits_.size(); ++i) {
      const std::uint64_t wanted = value >> (bits_.size() - 1 - i) & 1U;
      const int bit = bits_[i];
      if (bit < state_->local_bits()) {
        place |= wanted << bit;
      } else if ((held_ >> bit & 1U) != wanted) {
        return 0;
      }
    }
    if (state_->precision() == Precision::single_precision) return sum(state_->local<float>(), place);
    return sum(state_->local<double>(), place);
  }

 private:
  template <typename Amplitudes>
  [[nodiscard]] double sum(Amplitudes amplitudes, std::uint64_t place) const {
    double total = 0;
    for (std::uint64_t part = 0;;) {
      const auto& a = amplitudes[place | part];
      const double re = a.real();
      const double im = a.imag();
      total += re * re + im * im;
      part = (part - free_) & free_;
      if (part == 0) return total;
    }
  }

  const State* state_;
  std::vector<int> bits_;
  std::uint64_t free_ = 0;
  std::uint64_t held_ = 0;
};

void decide_first(const State& state, Deciding& deciding, std::span<const std::uint64_t> shots, std::uint64_t seed) {
  const int most = std::clamp(static_cast<int>(std::bit_width(shots.size())) + 2, 12, 20);
  const std::size_t count = std::min(deciding.order.size(), static_cast<std::size_t>(most));
  std::vector<int> lowest_first(deciding.order.begin(), deciding.order.begin() + static_cast<std::ptrdiff_t>(count));
  std::reverse(lowest_first.begin(), lowest_first.end());
  const Tree tree(state.probabilities(lowest_first));
  for (std::size_t i = 0; i < shots.size(); ++i) deciding.got[i] = tree.draw(seed, shots[i], sampling_events);
  deciding.decided = count;
}

// The next qubits, for shots whose prefixes are sorted.
void decide_some(const State& state, Deciding& deciding, std::span<const std::uint64_t> shots, std::uint64_t seed,
                 std::size_t count, std::span<const std::size_t> sorted) {
  std::vector<std::uint64_t> prefixes;
  for (const std::size_t i : sorted) {
    if (prefixes.empty() || prefixes.back() != deciding.got[i]) prefixes.push_back(deciding.got[i]);
  }
  const std::size_t values = std::size_t{1} << count;
  const Places places(state, deciding, count);
  std::vector<double> weights(prefixes.size() * values);
  for (std::size_t p = 0; p < prefixes.size(); ++p) {
    for (std::size_t v = 0; v < values; ++v) weights[p * values + v] = places.probability(prefixes[p] << count | v);
  }
  sum_over_ranks(state.group(), weights);
  std::size_t p = 0;
  std::optional<Tree> tree;
  for (const std::size_t i : sorted) {
    if (deciding.got[i] != prefixes[p] || !tree) {
      if (deciding.got[i] != prefixes[p]) ++p;
      tree.emplace(std::span(weights).subspan(p * values, values));
    }
    deciding.got[i] = deciding.got[i] << count | tree->draw(seed, shots[i], sampling_events + deciding.decided);
  }
}

void decide_next(const State& state, Deciding& deciding, std::span<const std::uint64_t> shots, std::uint64_t seed) {
  const std::size_t count = std::min<std::size_t>(later_qubits, deciding.order.size() - deciding.decided);
  std::vector<std::size_t> sorted(shots.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](std::size_t a, std::size_t b) { return deciding.got[a] < deciding.got[b]; });
  for (std::size_t begin = 0; begin < sorted.size();) {
    // Whole groups of equal prefixes, as many as may be at once.
    std::size_t end = begin;
    for (std::size_t groups = 0; end < sorted.size(); ++end) {
      if (end != begin && deciding.got[sorted[end]] == deciding.got[sorted[end - 1]]) continue;
      if (++groups > most_at_once) break;
    }
    decide_some(state, deciding, shots, seed, count, std::span(sorted).subspan(begin, end - begin));
    begin = end;
  }
  deciding.decided += count;
}

}  // namespace

std::vector<std::uint64_t> sample(const State& state, std::span<const int> qubits, std::span<const std::uint64_t> shots,
                                  std::uint64_t seed) {
  Deciding deciding;
  deciding.order.assign(qubits.begin(), qubits.end());
  std::sort(deciding.order.begin(), deciding.order.end(), std::greater<>());
  deciding.got.assign(shots.size(), 0);
  if (qubits.empty() || shots.empty()) return deciding.got;
  decide_first(state, deciding, shots, seed);
  while (deciding.decided < deciding.order.size()) decide_next(state, deciding, shots, seed);
  // From the order of deciding to the order asked for.
  std::vector<int> position;
  for (const int qubit : qubits) {
    const auto at = std::find(deciding.order.begin(), deciding.order.end(), qubit) - deciding.order.begin();
    position.push_back(static_cast<int>(deciding.order.size()) - 1 - static_cast<int>(at));
  }
  for (std::uint64_t& value : deciding.got) {
    std::uint64_t asked = 0;
    for (std::size_t i = 0; i < position.size(); ++i) asked |= (value >> position[i] & 1U) << i;
    value = asked;
  }
  return deciding.got;
}

}  // namespace onehop::quantum
