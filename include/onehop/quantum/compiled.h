// A circuit with parameters, planned once and run with many values of them.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onehop/quantum/circuit.h"
#include "onehop/quantum/observable.h"
#include "onehop/quantum/placement.h"
#include "onehop/quantum/simulator.h"
#include "onehop/quantum/state.h"

namespace onehop::quantum {

struct CompileOptions {
  Precision precision = Precision::double_precision;
  StateOptions state = {};
  double search_seconds = 1;  // see PlacementOptions
  // 0, or a number of ranks, a power of two. The circuit is then placed on so many ranks, and each rank computes the
  // parts of several of them, one after the other. Amplitudes, expectation values and derivatives have the same bits on
  // every number of ranks up to this one. A circuit too small for it takes as many as it can.
  int reproducible = 0;
};

// What `Compiled::gradients` returns. Rows belong to observables, columns to parameters.
struct Gradients {
  std::vector<double> values;  // the expectation value of each observable
  // values.size() x parameters, row-major; with `weights` one row, the derivatives of the weighted sum of the values.
  std::vector<double> derivatives;
  double forward_seconds = 0;         // from |0...0> to the final state
  double backward_seconds = 0;        // everything after it
  double backward_passes = 0;         // of ket and bra together, over this rank's amplitudes
  double backward_multiply_adds = 0;  // real multiply-adds per amplitude in these passes
};

// A circuit that has been placed on the ranks of a group. simulate() makes its measurements; the other functions take
// circuits of gates, and leave measurements at the end out. Other values of the parameters change numbers in tables
// only: no qubit is placed and no pass is planned again. All functions are collective unless stated otherwise.
class Compiled {
 public:
  // Throws BadInput if the circuit is invalid or there are more ranks than `reproducible`, and as State does. If the
  // circuit is too small for all ranks, groups of ranks run it redundantly.
  Compiled(const Circuit& circuit, const Group& group, const CompileOptions& options = {});
  Compiled(Compiled&&) noexcept;
  Compiled& operator=(Compiled&&) noexcept;
  ~Compiled();

  // -- properties (not collective) --
  [[nodiscard]] const std::vector<std::string>& parameters() const noexcept;
  [[nodiscard]] const Placement& placement() const noexcept;
  [[nodiscard]] int ranks() const noexcept;  // over which a state is split

  // Runs the circuit from |0...0> with a value for each parameter. The state is valid until the next call of any
  // function. Throws BadInput for a wrong number of values, one that is not finite, or a circuit with measurements,
  // resets or conditions before its end, as the functions below do.
  State& run(std::span<const double> values);

  // Runs the circuit; returns the expectation values of `sums`.
  [[nodiscard]] std::vector<std::complex<double>> expectations(std::span<const double> values,
                                                               std::span<const PauliSum> sums);

  // Runs the circuit with its measurements, as `simulate` does with the bound circuit, on a state of its own. Of the
  // options, `precision`, `state` and `search_seconds` are those of the constructor.
  [[nodiscard]] SimulationResult simulate(std::span<const double> values, const SimulationOptions& options);

  // The expectation values of `sums` for many bindings: `bindings` has parameters().size() values for each of `count`
  // runs, the result sums.size() for each. States that are small are divided over the ranks and threads.
  [[nodiscard]] std::vector<std::complex<double>> run_many(std::span<const double> bindings, std::size_t count,
                                                           std::span<const PauliSum> sums);

  // Expectation values of Hermitian sums with their derivatives by all parameters, by the adjoint method. `weights`:
  // empty, or one for each sum; then the derivatives of the weighted sum are computed, in one sweep (a vector-Jacobian
  // product). `variance`: the variances <H^2> - <H>^2 take the place of the expectation values. Needs 2 states of
  // memory, and a third for more than one sum without weights or for variances. Throws BadInput for a sum that
  // is not Hermitian or a wrong number of values or weights.
  [[nodiscard]] Gradients gradients(std::span<const double> values, std::span<const PauliSum> sums,
                                    std::span<const double> weights = {}, bool variance = false);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::quantum
