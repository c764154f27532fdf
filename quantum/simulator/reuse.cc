#include "quantum/simulator/reuse.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numeric>
#include <utility>

#include "quantum/circuit/final_measurements.h"

namespace onehop::quantum {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

bool draws(const Operation& operation) {
  return operation.kind == OperationKind::measure || operation.kind == OperationKind::reset;
}

// The qubits of an operation, then the numbers of its classical bits after all qubits.
std::vector<int> resources_of(const Operation& operation, int qubits) {
  std::vector<int> result = operation.targets;
  result.insert(result.end(), operation.controls.begin(), operation.controls.end());
  for (const int bit : operation.clbits) result.push_back(qubits + bit);
  for (const int bit : operation.condition.clbits) result.push_back(qubits + bit);
  return result;
}

// Which operations must come before which, and orders that obey.
class Order {
 public:
  explicit Order(const Circuit& circuit) : circuit_(circuit), qubits_(circuit.qubits) {
    const std::size_t resources = at(circuit.qubits + circuit.clbits + circuit.hidden_clbits);
    latest_.assign(resources, -1);
    for (std::size_t i = 0; i < circuit.operations.size(); ++i) {
      resources_.push_back(resources_of(circuit.operations[i], qubits_));
      before_.emplace_back();
      for (const int one : resources_.back()) {
        const int earlier = std::exchange(latest_[at(one)], static_cast<int>(i));
        if (earlier >= 0) before_.back().push_back(earlier);
      }
    }
    done_.assign(circuit.operations.size(), false);
  }

  // All outcomes in the order of the program, and gates as late as they allow.
  std::vector<int> late() {
    for (std::size_t i = 0; i < done_.size(); ++i) {
      if (draws(circuit_.operations[i])) finish(static_cast<int>(i));
    }
    return rest();
  }

  // Finishes qubits one after the other, next the one that needs the fewest qubits that have not been in the state.
  std::vector<int> narrow() {
    const std::size_t words = (at(qubits_) + 63) / 64;
    const std::vector<std::uint64_t> needs = needs_of_resources(words);
    std::vector<std::uint64_t> known(words, 0);  // a mask of the qubits that are or have been in the state
    std::vector<int> open(at(qubits_));
    std::iota(open.begin(), open.end(), 0);
    while (!open.empty()) {
      const auto further = [&](int qubit) {
        int count = 0;
        for (std::size_t w = 0; w < words; ++w) count += std::popcount(needs[at(qubit) * words + w] & ~known[w]);
        return count;
      };
      const auto best = std::ranges::min_element(open, {}, further);
      for (std::size_t w = 0; w < words; ++w) known[w] |= needs[at(*best) * words + w];
      if (latest_[at(*best)] >= 0) finish(latest_[at(*best)]);
      open.erase(best);
    }
    return rest();
  }

 private:
  // Appends an operation after all that must come before it.
  void finish(int last) {
    std::vector<int> open{last};
    std::vector<int> wanted;
    while (!open.empty()) {
      const int next = open.back();
      open.pop_back();
      if (done_[at(next)]) continue;
      done_[at(next)] = true;
      wanted.push_back(next);
      open.insert(open.end(), before_[at(next)].begin(), before_[at(next)].end());
    }
    std::sort(wanted.begin(), wanted.end());
    order_.insert(order_.end(), wanted.begin(), wanted.end());
  }

  std::vector<int> rest() {
    for (std::size_t i = 0; i < done_.size(); ++i) {
      if (!done_[i]) order_.push_back(static_cast<int>(i));
    }
    return std::move(order_);
  }

  // For each resource a mask of the qubits that its operations, and those before them, act on.
  [[nodiscard]] std::vector<std::uint64_t> needs_of_resources(std::size_t words) const {
    std::vector<std::uint64_t> needs(latest_.size() * words, 0);
    for (const std::vector<int>& resources : resources_) {
      for (std::size_t w = 0; w < words; ++w) {
        std::uint64_t all = 0;
        for (const int one : resources) {
          all |= needs[at(one) * words + w];
          if (at(one) / 64 == w && one < qubits_) all |= std::uint64_t{1} << (one % 64);
        }
        for (const int one : resources) needs[at(one) * words + w] = all;
      }
    }
    return needs;
  }

  const Circuit& circuit_;
  int qubits_;
  std::vector<std::vector<int>> resources_;  // of each operation
  std::vector<std::vector<int>> before_;
  std::vector<int> latest_;  // operation of each resource
  std::vector<bool> done_;
  std::vector<int> order_;
};

Operation drawing(OperationKind kind, int qubit, int bit) {
  Operation result;
  result.kind = kind;
  result.name = kind == OperationKind::measure ? "measure" : "reset";
  result.targets = {qubit};
  if (bit >= 0) result.clbits = {bit};
  return result;
}

Condition is_one(int bit) {
  Condition result;
  result.clbits = {bit};
  result.value = 1;
  return result;
}

// Operations one target after the other, and measurements and resets of the qubits that leave at the end.
void measure_early(StoredPart& part, const std::vector<bool>& stays) {
  Circuit& circuit = part.split.body.circuit;
  std::vector<Operation> operations;
  std::vector<bool> ended(stays.size(), false);  // whether nothing follows its measurement or reset
  const auto append = [&](Operation operation) {
    for (const auto* qubits : {&operation.targets, &operation.controls}) {
      for (const int qubit : *qubits) ended[at(qubit)] = draws(operation) && operation.condition.clbits.empty();
    }
    operations.push_back(std::move(operation));
  };
  for (Operation& operation : circuit.operations) {
    if (!draws(operation) || !operation.condition.clbits.empty()) {
      append(std::move(operation));
      continue;
    }
    for (std::size_t t = 0; t < operation.targets.size(); ++t) {
      const bool measures = operation.kind == OperationKind::measure;
      append(drawing(operation.kind, operation.targets[t], measures ? operation.clbits[t] : -1));
    }
  }
  if (circuit.clbits == 0) circuit.clbits = part.split.bits;  // the bits of all qubits, which are measured at the end
  std::erase_if(part.split.last, [&](const std::pair<int, int>& last) {
    const auto& [bit, qubit] = last;
    if (qubit >= circuit.qubits || stays[at(qubit)]) return false;
    append(drawing(OperationKind::measure, qubit, bit));
    return true;
  });
  for (int qubit = 0; qubit < circuit.qubits; ++qubit) {
    if (!stays[at(qubit)] && !ended[at(qubit)]) append(drawing(OperationKind::reset, qubit, -1));
  }
  circuit.operations = std::move(operations);
}

// Gives qubits their places in the state, operation by operation.
class Places {
 public:
  Places(Circuit& circuit, const std::vector<bool>& stays)
      : circuit_(circuit),
        stays_(stays),
        uses_(at(circuit.qubits), 0),
        place_of_(at(circuit.qubits), -1),
        entered_(at(circuit.qubits), false) {
    for (const Operation& operation : circuit.operations) {
      for (const auto* qubits : {&operation.targets, &operation.controls}) {
        for (const int qubit : *qubits) ++uses_[at(qubit)];
      }
    }
  }

  void add(Operation operation) {
    const bool leaves = draws(operation) && operation.condition.clbits.empty();
    std::vector<std::pair<int, int>> leaving;  // qubits, and the bits that have their values; -1: they are |0>
    for (auto* qubits : {&operation.targets, &operation.controls}) {
      for (std::size_t i = 0; i < qubits->size(); ++i) {
        int& qubit = (*qubits)[i];
        const bool last = --uses_[at(qubit)] == 0;
        const bool measured = operation.kind == OperationKind::measure;
        if (leaves && !(last && stays_[at(qubit)]) && (last || !measured)) {
          leaving.emplace_back(qubit, measured ? operation.clbits[i] : -1);
        }
        qubit = enter(qubit);
      }
    }
    operations_.push_back(std::move(operation));
    for (const auto& [qubit, bit] : leaving) leave(qubit, bit);
  }

  // Ends with all qubits that must be in the state.
  void finish() {
    for (int qubit = 0; qubit < circuit_.qubits; ++qubit) {
      if (stays_[at(qubit)]) static_cast<void>(enter(qubit));
    }
  }

  [[nodiscard]] int size() const noexcept { return static_cast<int>(places_.size()); }

  // Writes the result.
  void replace(StoredPart& part) {
    const int before = circuit_.qubits;
    for (auto& [bit, qubit] : part.split.last) {
      qubit = qubit >= before ? qubit - before + size() : place_of_[at(qubit)];
    }
    std::vector<std::pair<int, int>> measured;  // places and draws
    for (std::size_t i = 0; i < part.split.qubits.size(); ++i) {
      const int qubit = part.split.qubits[i];
      const int most = static_cast<int>(part.split.qubits.size()) - 1;
      const int draw = part.split.draws.empty() ? most - static_cast<int>(i) : part.split.draws[i];
      if (stays_[at(qubit)]) measured.emplace_back(place_of_[at(qubit)], draw);
    }
    std::sort(measured.begin(), measured.end());
    part.split.qubits.clear();
    part.split.draws.clear();
    for (const auto& [place, draw] : measured) {
      part.split.qubits.push_back(place);
      part.split.draws.push_back(draw);
    }
    std::vector<int> qubits;
    for (const Place& place : places_) qubits.push_back(part.qubits[at(place.qubit)]);
    for (const auto& [qubit, bit] : left_) part.left.emplace_back(part.qubits[at(qubit)], bit);
    part.qubits = std::move(qubits);
    circuit_.qubits = size();
    circuit_.operations = std::move(operations_);
  }

 private:
  struct Place {
    int qubit = 0;      // the last one
    bool free = false;  // it has left
    int bit = -1;       // has its value then; -1: it is |0>
  };

  int enter(int qubit) {
    int& place = place_of_[at(qubit)];
    if (place >= 0 && !places_[at(place)].free) return place;
    const auto empty = [](const Place& one) { return one.free; };
    if (place < 0) place = static_cast<int>(std::find_if(places_.begin(), places_.end(), empty) - places_.begin());
    if (place == size()) {
      places_.push_back({qubit});
      if (entered_[at(qubit)]) flip_if(circuit_.clbits + circuit_.hidden_clbits++, place);
      entered_[at(qubit)] = true;
      return place;
    }
    entered_[at(qubit)] = true;
    Place& taken = places_[at(place)];
    if (taken.bit >= 0) {
      flip_if(taken.bit, place);
      if (taken.qubit != qubit) left_.emplace_back(taken.qubit, taken.bit);
    }
    if (taken.qubit != qubit) place_of_[at(taken.qubit)] = -1;
    taken = {qubit};
    return place;
  }

  // Flips a place if this bit is 1. A place that is no longer fresh draws outcomes of resets; for that the bit may be
  // one that is never 1.
  void flip_if(int bit, int place) {
    Operation flip = gate("x", {place});
    flip.condition = is_one(bit);
    operations_.push_back(std::move(flip));
  }

  void leave(int qubit, int bit) {
    Place& place = places_[at(place_of_[at(qubit)])];
    place.free = true;
    if (bit < 0) return;
    place.bit = circuit_.clbits + circuit_.hidden_clbits++;  // `bit` may change
    Operation keep;
    keep.kind = OperationKind::assign;
    keep.name = "leave";
    keep.clbits = {place.bit};
    keep.condition = is_one(bit);
    operations_.push_back(std::move(keep));
  }

  Circuit& circuit_;
  const std::vector<bool>& stays_;
  std::vector<int> uses_;      // to come, of each qubit
  std::vector<int> place_of_;  // -1: none
  std::vector<Place> places_;
  std::vector<bool> entered_;  // whether each qubit has been in the state
  std::vector<Operation> operations_;
  std::vector<std::pair<int, int>> left_;  // qubits whose places others have taken, and the bits that have their values
};

}  // namespace

StoredPart with_reuse(StoredPart part, std::vector<bool> stays, Leaving leaving) {
  StoredPart result = part;
  Circuit& circuit = result.split.body.circuit;
  circuit = without_fresh_resets(std::move(circuit));
  if (leaving == Leaving::early) {
    if (circuit.clbits == 0 && circuit.hidden_clbits > 0) return part;
    measure_early(result, stays);
  } else {
    for (const int qubit : result.split.qubits) stays[at(qubit)] = true;
  }
  // A qubit whose last operation is neither stays.
  std::vector<bool> ends(stays.size(), false);
  for (const Operation& operation : circuit.operations) {
    for (const auto* qubits : {&operation.targets, &operation.controls}) {
      for (const int qubit : *qubits) ends[at(qubit)] = draws(operation) && operation.condition.clbits.empty();
    }
  }
  for (std::size_t qubit = 0; qubit < stays.size(); ++qubit) stays[qubit] = stays[qubit] || !ends[qubit];
  Order order(circuit);
  Places places(circuit, stays);
  for (const int index : leaving == Leaving::early ? order.narrow() : order.late()) {
    places.add(circuit.operations[at(index)]);
  }
  places.finish();
  if (places.size() >= circuit.qubits) return part;
  places.replace(result);
  return result;
}

}  // namespace onehop::quantum
