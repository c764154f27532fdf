// The body of a program with histories as a list of steps, each a gate or a channel. Resets are channels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "onehop/quantum/program.h"
#include "quantum/simulator/kraus.h"

namespace onehop::quantum {

// A channel that was drawn: at `step` it applies this operator instead of its default one.
struct NoiseEvent {
  std::uint32_t step = 0;
  std::uint32_t op = 0;
  friend auto operator<=>(const NoiseEvent&, const NoiseEvent&) = default;
};

class NoisyProgram {
 public:
  // The program must have histories and outlive this object.
  explicit NoisyProgram(const Program& program);

  [[nodiscard]] std::size_t steps() const { return steps_.size(); }
  // The first step from `from` on whose probabilities depend on the state; steps() if there is none.
  [[nodiscard]] std::size_t next_dependent(std::size_t from) const;
  [[nodiscard]] const std::vector<std::size_t>& dependent() const { return dependent_; }
  [[nodiscard]] std::uint32_t default_operator(std::size_t step) const;

  // The events of a trajectory that do not depend on the state.
  [[nodiscard]] std::vector<NoiseEvent> draw(std::uint64_t seed, std::uint64_t trajectory) const;

  // Applies the gates and the default operators of the steps [from, to). Operators that depend on the state are not
  // normalised. Collective.
  void advance(State& state, std::size_t from, std::size_t to) const;
  // Applies an operator of a channel, likewise. Collective.
  void apply(State& state, const NoiseEvent& event) const;
  // |K psi|^2 for each operator K of the channel at a step. Collective.
  [[nodiscard]] std::vector<double> weights(State& state, std::size_t step) const;

 private:
  struct Step {
    int gate = -1;  // index into gates_; -1: a channel
    int channel = -1;
    std::vector<int> qubits;
  };

  void add_channel(std::size_t channel, std::vector<int> qubits);
  [[nodiscard]] const KrausOperators& channel(const Step& step) const;
  // Whether the default operator of a channel is the identity.
  [[nodiscard]] bool does_nothing(const Step& step) const;
  [[nodiscard]] Operation operation(const Step& step, std::uint32_t op) const;
  // The operation on a state of one rank; nullopt: nothing to do.
  [[nodiscard]] static std::optional<LocalOperation> local(const Operation& operation, int qubits);

  int qubits_;
  std::vector<Operation> gates_;
  std::vector<KrausOperators> channels_;  // the last one is a reset
  std::vector<Step> steps_;
  std::vector<std::size_t> dependent_;
  // For states on one rank: the operations of advance(), and for each step the number of those before it.
  std::vector<LocalOperation> locals_;
  std::vector<std::size_t> locals_before_;
};

}  // namespace onehop::quantum
