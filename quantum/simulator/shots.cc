#include "quantum/simulator/shots.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "onehop/error.h"
#include "quantum/circuit/final_measurements.h"
#include "quantum/circuit/random.h"
#include "quantum/state/sorted_order.h"

namespace onehop::quantum {
namespace {

constexpr std::uint64_t reading_events = std::uint64_t{1} << 41;  // beyond all events inside a program and of samples

}  // namespace

SplitProgram::SplitProgram(const Circuit& circuit, Program others) : body(std::move(others)), bits(circuit.clbits) {
  SplitCircuit split = split_final_measurements(circuit);
  body.circuit = std::move(split.body);
  if (bits > 0 || !body.saves.empty()) {
    for (const auto& [bit, qubit] : split.last) {
      if (bit < bits) last.emplace_back(bit, qubit);
    }
  } else {  // all qubits are measured
    bits = circuit.qubits;
    for (int qubit = 0; qubit < bits; ++qubit) last.emplace_back(qubit, qubit);
  }
  for (const auto& [bit, qubit] : last) qubits.push_back(qubit);
  std::sort(qubits.begin(), qubits.end());
  qubits.erase(std::unique(qubits.begin(), qubits.end()), qubits.end());
}

int SplitProgram::place_of(int qubit) const {
  return static_cast<int>(std::lower_bound(qubits.begin(), qubits.end(), qubit) - qubits.begin());
}

bool SplitProgram::read(std::uint64_t seed, std::uint64_t shot, const std::pair<int, int>& bit_and_qubit,
                        bool value) const {
  if (body.readout.empty()) return value;
  const auto& [bit, qubit] = bit_and_qubit;
  const auto& [one_for_zero, zero_for_one] = body.readout[static_cast<std::size_t>(qubit)];
  const double wrong = value ? zero_for_one : one_for_zero;
  if (!(wrong > 0)) return value;
  return value != (detail::uniform(seed, shot, reading_events + static_cast<std::uint64_t>(bit)) < wrong);
}

std::vector<std::uint64_t> shots_of(std::span<const std::uint64_t> runs, std::int64_t all_runs, std::int64_t shots) {
  std::vector<std::uint64_t> result;
  for (const std::uint64_t run : runs) {
    for (std::uint64_t shot = run; shot < static_cast<std::uint64_t>(shots);
         shot += static_cast<std::uint64_t>(all_runs))
      result.push_back(shot);
  }
  std::sort(result.begin(), result.end());
  return result;
}

Shots::Shots(int bits, std::int64_t shots)
    : bits_(bits),
      shots_(static_cast<std::size_t>(shots)),
      words_(static_cast<std::size_t>(bits + 63) / 64),
      values_(shots_ * words_) {}

void Shots::set_words(const std::vector<std::uint64_t>& words) {
  if (words.size() != values_.size()) {
    throw BadInput("the checkpoint has another number of shots or classical bits: expected " +
                   std::to_string(values_.size()) + " words of outcomes, found " + std::to_string(words.size()));
  }
  values_ = words;
}

Outcomes Shots::outcomes() const {
  Outcomes result;
  result.clbits = bits_;
  std::vector<std::uint32_t> order(shots_);
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  const auto less = [&](std::uint32_t a, std::uint32_t b) {
    for (std::size_t w = words_; w-- > 0;) {
      if (values_[a * words_ + w] != values_[b * words_ + w]) return values_[a * words_ + w] < values_[b * words_ + w];
    }
    return false;
  };
  if (words_ == 1) {  // the usual case
    order = sorted_order(values_);
  } else {
    std::sort(order.begin(), order.end(), less);
  }
  result.of_shot.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || less(order[i - 1], order[i])) {
      const auto first = values_.begin() + static_cast<std::ptrdiff_t>(order[i] * words_);
      result.values.emplace_back(first, first + static_cast<std::ptrdiff_t>(words_));
      result.counts.push_back(0);
    }
    ++result.counts.back();
    result.of_shot[order[i]] = static_cast<std::uint32_t>(result.values.size() - 1);
  }
  return result;
}

}  // namespace onehop::quantum
