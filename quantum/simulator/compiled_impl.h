// The contents of a Compiled circuit.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "onehop/quantum/compiled.h"
#include "onehop/quantum/simulator.h"
#include "quantum/engine/engine_program.h"
#include "quantum/simulator/light_cone.h"
#include "quantum/simulator/storage.h"

namespace onehop::quantum {

// `simulate` with the placement of the only part of a valid circuit, whose operations may have other angles. `qubits`:
// of the circuit; `values`: of its parameters, which the ranks compare.
[[nodiscard]] SimulationResult simulate_placed(const std::vector<StoredPart>& parts, int qubits, const Group& group,
                                               const SimulationOptions& options,
                                               const std::shared_ptr<const Placement>& placement,
                                               std::span<const double> values);

// A circuit to place: each mark and jump becomes a barrier, so that the body of a loop is placed once.
[[nodiscard]] Circuit without_jumps(Circuit circuit);

struct Compiled::Impl {
  Impl(const Circuit& circuit, const Group& group, const CompileOptions& options);

  // The gates of a stage on the bits of one of this rank's parts.
  struct StageProgram {
    std::vector<LocalOperation> operations;  // of large states, for which nothing is compiled
    std::variant<std::monostate, std::unique_ptr<EngineProgram<float>>, std::unique_ptr<EngineProgram<double>>>
        compiled;
    std::uint64_t flips = 0;  // after the stage
    bool varies = false;
    bool fresh = true;  // whether it was compiled with the present angles

    // Compiles the operations for one or two states of `bits` bits, unless these are large.
    void compile(const State& state, int bits, bool two);
    // Gives the operations that vary these angles.
    void set_angles(std::span<const double> angles);
    // Runs on a part of one state, or of two.
    EngineCounters run(const Impl& impl, std::size_t part, std::span<const double> angles, const State& ket,
                       const State* bra = nullptr, std::span<double> by_angle = {});
  };

  // The stages of the placement.
  struct Programs {
    std::vector<std::vector<StageProgram>> stages;    // for each part; empty: not made yet
    std::vector<std::vector<StageProgram>> inverses;  // for two states
    std::uint64_t inverse_flips = 0;                  // of the final state for which they were made
  };

  // Throws Mismatch unless all ranks call a function with the same arguments.
  void require_same_call(std::span<const double> values, std::span<const PauliSum> sums = {},
                         std::span<const double> weights = {}, bool variance = false) const;
  // Throws BadInput unless the circuit has gates only.
  void require_gates() const;
  // Throws BadInput for values that are not finite, or that give an angle that is not.
  void check(std::span<const double> values) const;
  void bind(std::span<const double> values);
  // From now on, runs only the gates that matter to these observables, or all again. The last bits of a value depend on
  // which, so that each function always does the same.
  void only_for(std::span<const PauliSum> sums);
  void use_all() { programs = &all_gates; }
  void run(std::span<const double> values);
  // The parts of this rank: one, unless the results are reproducible.
  [[nodiscard]] std::size_t parts() const { return std::size_t{1} << (state->local_bits() - state->part_bits()); }
  // The number among the parts of all ranks.
  [[nodiscard]] int number_of(std::size_t part) const;
  [[nodiscard]] bool needs(int operation) const { return programs == &all_gates || cone.has(operation); }
  void make_stage(StageProgram& program, const Stage& stage, std::size_t part) const;
  // The expectation values in the final state, whose amplitudes may move.
  [[nodiscard]] std::vector<Complex> final_values(std::span<const PauliSum> sums);
  // Observables of the circuit on the qubits of the state. Throws BadInput for wrong ones.
  [[nodiscard]] std::vector<PauliSum> on_state(std::span<const PauliSum> sums, bool hermitian) const;
  // What `on_state` leaves out, because its mean is 0: the strings that flip idle qubits, which are |0>. One sum on the
  // state for each set of qubits that they flip. The sums of different sets lead to orthogonal states.
  [[nodiscard]] std::vector<PauliSum> flipping(const PauliSum& sum) const;

  // In gradients.cc. `flips`: of variances, `flipping` of each observable.
  Gradients gradients(std::span<const double> values, std::span<const PauliSum> sums, std::span<const double> weights,
                      bool variance, std::span<const std::vector<PauliSum>> flips);
  // Goes back from the final state, where bra = H ket: adds the derivative by the angle of each of `varying`.
  void go_back(State& ket, State& bra, std::span<double> by_angle);
  void make_inverse(StageProgram& program, std::size_t stage, std::size_t part, std::uint64_t flips) const;
  [[nodiscard]] std::unique_ptr<State> new_state() const;

  CompileOptions options;
  std::vector<std::string> names;
  Group whole;  // all ranks; `state` may be on a part of them
  Placement placement;
  int part_bits = 0;           // of the states while the circuit runs, see State::set_part_bits
  std::vector<int> varying;    // the operations of the placement whose angle varies
  std::vector<double> angles;  // of each operation of the placement; only those of `varying` are used
  Programs all_gates, cone_gates;
  Programs* programs = &all_gates;
  LightCone cone;
  std::vector<double> inverse_angles;  // the negative of `angles`
  std::unique_ptr<State> state, bra, kept, all_qubits;
  EngineCounters counters;
  std::unique_ptr<Circuit> circuit;  // to make workers
  // The circuit with gates that depend on parameters as rotations, without idle qubits: one part.
  std::vector<StoredPart> stored;
  int inside = -1;  // the first operation of `circuit` that only simulate() takes, such as a measurement; -1: none
  std::vector<std::unique_ptr<Impl>> workers;  // for run_many, on one thread each
};

}  // namespace onehop::quantum
