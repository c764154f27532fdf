#include "quantum/simulator/storage.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "onehop/error.h"
#include "quantum/simulator/reuse.h"

namespace onehop::quantum {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// Joins the wires on which operations act together. A wire begins as the qubit of its number; swaps move qubits between
// wires. The wire after the last one stands for all that is no gate without condition.
class Wires {
 public:
  Wires(const Program& body, bool divide)
      : qubits_(body.circuit.qubits), divide_(divide), parents_(at(qubits_) + 1), used_(at(qubits_), false) {
    std::iota(parents_.begin(), parents_.end(), 0);
    begin();
    for (const Operation& operation : body.circuit.operations) add(body, operation);
    if (std::find(used_.begin(), used_.end(), true) == used_.end()) used_[0] = true;
    std::map<int, int> parts;  // by the root of their wires
    places_.assign(at(qubits_), {-1, -1});
    for (int wire = 0; wire < qubits_; ++wire) {
      if (!used_[at(wire)]) continue;
      const int part = parts.try_emplace(find(wire), static_cast<int>(parts.size())).first->second;
      if (part == static_cast<int>(sizes_.size())) sizes_.push_back(0);
      places_[at(wire)] = {part, sizes_[at(part)]++};
    }
    const auto walk = parts.find(find(qubits_));
    if (walk != parts.end()) walk_ = walk->second;
  }

  // Goes back to before the first operation.
  void begin() {
    wire_of_.resize(at(qubits_));
    std::iota(wire_of_.begin(), wire_of_.end(), 0);
  }
  // Whether the operation is a swap that only moves qubits. Moves them.
  bool moves(const Operation& operation) {
    const bool plain = operation.controls.empty() && operation.condition.clbits.empty();
    if (!divide_ || operation.kind != OperationKind::swap || !plain) return false;
    std::swap(wire_of_[at(operation.targets[0])], wire_of_[at(operation.targets[1])]);
    return true;
  }

  [[nodiscard]] const std::vector<int>& sizes() const noexcept { return sizes_; }
  // The part of a qubit and its number there; -1: in none.
  [[nodiscard]] std::pair<int, int> place_of(int qubit) const { return places_[at(wire_of_[at(qubit)])]; }
  [[nodiscard]] int part_of(const Operation& operation) const {
    for (const auto* qubits : {&operation.targets, &operation.controls}) {
      if (!qubits->empty()) return place_of(qubits->front()).first;
    }
    return walk_;
  }

 private:
  [[nodiscard]] bool walks(const Operation& operation) const {
    return !divide_ || !operation.is_gate() || !operation.condition.clbits.empty();
  }

  int find(int wire) {
    for (; parents_[at(wire)] != wire; wire = parents_[at(wire)]) {
      parents_[at(wire)] = parents_[at(parents_[at(wire)])];
    }
    return wire;
  }

  void add(const Program& body, const Operation& operation) {
    if (operation.kind == OperationKind::barrier || moves(operation)) return;
    int first = walks(operation) ? qubits_ : -1;
    const auto join = [&](int qubit) {
      const int wire = wire_of_[at(qubit)];
      used_[at(wire)] = true;
      if (first < 0) first = wire;
      parents_[at(find(wire))] = find(first);
    };
    std::for_each(operation.targets.begin(), operation.targets.end(), join);
    std::for_each(operation.controls.begin(), operation.controls.end(), join);
    if (operation.kind != OperationKind::save) return;
    for (const PauliSum& sum : body.saves[at(operation.index)].observables) {
      for (const PauliTerm& term : sum.terms) {
        for (const auto& [qubit, letter] : term.paulis) join(qubit);
      }
    }
  }

  int qubits_;
  bool divide_;
  int walk_ = 0;              // the part of operations without qubits
  std::vector<int> wire_of_;  // of each qubit
  std::vector<int> parents_;
  std::vector<bool> used_;
  std::vector<int> sizes_;                   // of the parts
  std::vector<std::pair<int, int>> places_;  // of the wires
};

// The final measurements of each part. Idle qubits, which are read as 0, have numbers after those of part 0.
void divide_measurements(const SplitProgram& whole, const Wires& wires, std::vector<StoredPart>& parts) {
  std::map<int, int> idle;
  for (StoredPart& part : parts) part.split.elsewhere.assign(at(whole.bits), false);
  for (const auto& [bit, qubit] : whole.last) {
    auto [part, number] = wires.place_of(qubit);
    if (part < 0) {
      part = 0;
      number = wires.sizes()[0] + idle.try_emplace(qubit, static_cast<int>(idle.size())).first->second;
    } else {
      parts[at(part)].split.qubits.push_back(number);
    }
    parts[at(part)].split.last.emplace_back(bit, number);
    for (StoredPart& other : parts) other.split.elsewhere[at(bit)] = &other != &parts[at(part)];
  }
  for (int qubit = 0; qubit < whole.body.circuit.qubits; ++qubit) {
    const auto [part, number] = wires.place_of(qubit);
    if (part >= 0) parts[at(part)].qubits[at(number)] = qubit;
  }
  for (StoredPart& part : parts) {
    std::vector<int>& qubits = part.split.qubits;
    std::sort(qubits.begin(), qubits.end());
    qubits.erase(std::unique(qubits.begin(), qubits.end()), qubits.end());
    for (const int number : qubits) {
      part.split.draws.push_back(static_cast<int>(whole.qubits.size()) - 1 - whole.place_of(part.qubits[at(number)]));
    }
    if (whole.body.readout.empty()) continue;  // else there is one part
    for (const int qubit : part.qubits) part.split.body.readout.push_back(whole.body.readout[at(qubit)]);
    for (const auto& [qubit, number] : idle) {
      part.split.body.readout.resize(std::max(part.split.body.readout.size(), at(wires.sizes()[0] + number) + 1));
      part.split.body.readout[at(wires.sizes()[0] + number)] = whole.body.readout[at(qubit)];
    }
  }
}

std::vector<StoredPart> divided(SplitProgram whole, Wires& wires) {
  std::vector<StoredPart> parts;
  std::vector<Operation> operations = std::move(whole.body.circuit.operations);
  for (const int size : wires.sizes()) {
    StoredPart& part = parts.emplace_back(StoredPart{whole, std::vector<int>(at(size))});
    part.split.body.circuit.qubits = size;
    part.split.body.readout.clear();
    part.split.last.clear();
    part.split.qubits.clear();
  }
  wires.begin();
  for (Operation& operation : operations) {
    if (wires.moves(operation)) continue;
    if (operation.kind == OperationKind::barrier) operation.targets.clear();
    const int part = wires.part_of(operation);
    for (auto* qubits : {&operation.targets, &operation.controls}) {
      for (int& qubit : *qubits) qubit = wires.place_of(qubit).second;
    }
    parts[at(part)].split.body.circuit.operations.push_back(std::move(operation));
  }
  for (Save& save : parts[0].split.body.saves) {
    for (PauliSum& sum : save.observables) {
      for (PauliTerm& term : sum.terms) {
        for (auto& [qubit, letter] : term.paulis) qubit = wires.place_of(qubit).second;
      }
    }
  }
  divide_measurements(whole, wires, parts);
  return parts;
}

// Whether qubits may leave the state of a circuit after outcomes that it draws.
bool may_leave(const Circuit& circuit) {
  return std::any_of(circuit.operations.begin(), circuit.operations.end(), [](const Operation& operation) {
    const bool draws = operation.kind == OperationKind::measure || operation.kind == OperationKind::reset;
    return draws && operation.condition.clbits.empty();
  });
}

// Lets qubits leave the states of parts. Returns whether any can.
bool reuse_places(std::vector<StoredPart>& parts, const std::vector<bool>& observed, int largest) {
  bool any = false;
  for (std::size_t number = 0; number < parts.size(); ++number) {
    StoredPart& part = parts[number];
    const int before = part.split.body.circuit.qubits;
    std::vector<bool> stays;
    for (const int qubit : part.qubits) stays.push_back(observed[at(qubit)]);
    StoredPart drawn = with_reuse(part, stays, Leaving::drawn);
    if (drawn.split.body.circuit.qubits > largest) {
      StoredPart early = with_reuse(part, std::move(stays), Leaving::early);
      if (early.split.body.circuit.qubits < drawn.split.body.circuit.qubits) {
        drawn = std::move(early);
        drawn.early = true;
        drawn.first_event = (std::uint64_t{number} + 1) << 24;  // parts draw independently
      }
    }
    any = any || drawn.split.body.circuit.qubits < before;
    part = std::move(drawn);
  }
  return any;
}

}  // namespace

StoredPart whole_part(SplitProgram whole) {
  std::vector<int> qubits(at(whole.body.circuit.qubits));
  std::iota(qubits.begin(), qubits.end(), 0);
  return {std::move(whole), std::move(qubits)};
}

std::vector<StoredPart> stored_parts(SplitProgram whole, const StorageOptions& options) {
  constexpr int fits_always = 20;
  Wires wires(whole.body, options.divide);
  const int size = *std::max_element(wires.sizes().begin(), wires.sizes().end());
  const int largest = size > fits_always && options.divide && options.largest ? options.largest() : size;
  const bool one = wires.sizes().size() == 1 && size == whole.body.circuit.qubits;
  if (options.divide && (size > largest || may_leave(whole.body.circuit))) {
    std::vector<bool> observed(at(whole.body.circuit.qubits), false);
    for (const PauliSum& sum : options.observables) {
      for (const PauliTerm& term : sum.terms) {
        for (const auto& [qubit, letter] : term.paulis) observed.at(at(qubit)) = true;
      }
    }
    std::vector<StoredPart> parts = divided(whole, wires);
    if (reuse_places(parts, observed, largest) || !one) return parts;
  }
  if (!one) return divided(std::move(whole), wires);
  std::vector<StoredPart> parts;
  parts.push_back(whole_part(std::move(whole)));
  return parts;
}

ObservableParts::ObservableParts(std::span<const PauliSum> sums, const std::vector<StoredPart>& parts, int qubits)
    : of_(parts.size()), sums_(sums.size()) {
  std::vector<std::pair<std::size_t, int>> places(at(qubits), {parts.size(), 0});
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (std::size_t i = 0; i < parts[part].qubits.size(); ++i) {
      places[at(parts[part].qubits[i])] = {part, static_cast<int>(i)};
    }
  }
  if (parts.size() == 1) of_[0].resize(sums.size());
  for (std::size_t sum = 0; sum < sums.size(); ++sum) {
    for (const PauliTerm& term : sums[sum].terms) {
      std::map<std::size_t, PauliTerm> factors;
      bool vanishes = false;
      for (const auto& [qubit, letter] : term.paulis) {
        if (qubit < 0 || qubit >= qubits) {
          throw BadInput("expected observables on qubits 0 to " + std::to_string(qubits - 1) + ", found qubit " +
                         std::to_string(qubit));
        }
        const auto& [part, number] = places[at(qubit)];
        if (part < parts.size()) {
          factors[part].paulis.emplace_back(number, letter);
        } else {
          vanishes = vanishes || letter != 'Z';
        }
      }
      if (vanishes) continue;
      if (parts.size() == 1) {
        PauliTerm& all = factors[0];
        all.coefficient = term.coefficient;
        of_[0][sum].terms.push_back(std::move(all));
        continue;
      }
      Product& product = products_.emplace_back(Product{sum, term.coefficient});
      for (auto& [part, factor] : factors) {
        product.factors.emplace_back(part, of_[part].size());
        of_[part].push_back({{std::move(factor)}});
      }
    }
  }
}

std::vector<Complex> ObservableParts::join(std::vector<std::vector<Complex>> values) const {
  if (values.size() == 1) return std::move(values[0]);
  std::vector<Complex> result(sums_, 0);
  for (const Product& product : products_) {
    Complex value = product.coefficient;
    for (const auto& [part, index] : product.factors) value *= values[part][index];
    result[product.sum] += value;
  }
  return result;
}

}  // namespace onehop::quantum
