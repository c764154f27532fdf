// Validates programs.
#include "onehop/quantum/program.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "onehop/error.h"
#include "quantum/circuit/final_measurements.h"
#include "src/base/text.h"

namespace onehop::quantum {
namespace {

[[noreturn]] void bad(std::size_t index, const Operation& operation, const std::string& message) {
  throw BadInput("operation " + std::to_string(index) + " (" + operation.name + "): " + message);
}

void check_channel(const Channel& channel) {
  const std::size_t numbers = channel.operators.empty() ? 0 : channel.operators.front().size();
  const auto size = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(numbers))));
  if (size < 2 || size * size != numbers || !std::has_single_bit(size)) {
    throw BadInput(channel.name + ": expected operators of 4^k numbers, found " + std::to_string(numbers));
  }
  for (const auto& matrix : channel.operators) {
    if (matrix.size() != numbers) throw BadInput(channel.name + ": expected operators of equal size");
  }
  if (!channel.probabilities.empty() && channel.probabilities.size() != channel.operators.size()) {
    throw BadInput(channel.name + ": expected a probability for each of " +
                   base::counted(channel.operators.size(), "operator") + ", found " +
                   std::to_string(channel.probabilities.size()));
  }
}

// Checks the operations that circuits do not have.
class Checker {
 public:
  Checker(const Program& program, bool mixed) : program_(program), mixed_(mixed) {}

  void check(std::size_t index, const Operation& operation) const {
    switch (operation.kind) {
      case OperationKind::channel:
        check_index(index, operation, program_.channels.size());
        check_size(index, operation);
        break;
      case OperationKind::save:
        check_index(index, operation, program_.saves.size());
        check_data(index, operation, program_.saves[static_cast<std::size_t>(operation.index)]);
        break;
      case OperationKind::set_state:
        check_state(operation);
        break;
      case OperationKind::misread:
        if (operation.values.size() != std::size_t{1} << 2 * operation.clbits.size()) {
          bad(index, operation, "expected a table of " + base::counted(operation.clbits.size(), "bit"));
        }
        break;
      default:
        break;
    }
  }

 private:
  static void check_index(std::size_t index, const Operation& operation, std::size_t limit) {
    if (operation.index < 0 || static_cast<std::size_t>(operation.index) >= limit) {
      bad(index, operation,
          "expected a number below " + std::to_string(limit) + ", found " + std::to_string(operation.index));
    }
  }

  void check_size(std::size_t index, const Operation& operation) const {
    const Channel& channel = program_.channels[static_cast<std::size_t>(operation.index)];
    if (channel.operators.front().size() != std::size_t{1} << 2 * operation.targets.size()) {
      bad(index, operation,
          channel.name + ": its operators do not act on " + base::counted(operation.targets.size(), "qubit"));
    }
  }

  void check_state(const Operation& operation) const {
    const std::size_t size = std::size_t{1} << program_.circuit.qubits;
    if (operation.values.size() == size || (mixed_ && operation.values.size() == size * size)) return;
    throw BadInput(operation.name + ": expected " + (mixed_ ? "a state" : "a state vector") + " of " +
                   base::counted(program_.circuit.qubits, "qubit") + ", found " +
                   base::counted(operation.values.size(), "number") +
                   (mixed_ ? "" : "; simulate a density matrix to set one"));
  }

  void check_data(std::size_t index, const Operation& operation, const Save& save) const {
    if (mixed_ && save.kind == Save::Kind::amplitudes) {
      throw BadInput(operation.name +
                     ": expected a state vector, found a density matrix; save the density matrix, or " +
                     "run with method=\"statevector\"");
    }
    if (save.observables.empty() && save.kind >= Save::Kind::expectations) {
      bad(index, operation, "expected an observable, found none");
    }
    for (const std::uint64_t amplitude : save.indices) {
      if (amplitude >> program_.circuit.qubits != 0) {
        bad(index, operation, "expected amplitudes of the state, found number " + std::to_string(amplitude));
      }
    }
    for (const PauliSum& sum : save.observables) {
      if (sum.qubits() > program_.circuit.qubits) {
        bad(index, operation,
            "expected observables on qubits 0 to " + std::to_string(program_.circuit.qubits - 1) + ", found qubit " +
                std::to_string(sum.qubits() - 1));
      }
    }
  }

  const Program& program_;
  bool mixed_;
};

bool is_unconditional(const Circuit& body, bool (*also)(OperationKind)) {
  return std::all_of(body.operations.begin(), body.operations.end(), [&](const Operation& operation) {
    const bool fits = operation.is_gate() || operation.kind == OperationKind::barrier || also(operation.kind);
    return fits && operation.condition.clbits.empty();
  });
}

}  // namespace

void Program::validate(bool mixed) const {
  for (const Channel& channel : channels) check_channel(channel);
  if (!readout.empty() && readout.size() != static_cast<std::size_t>(circuit.qubits)) {
    throw BadInput("program: expected readout errors of " + base::counted(circuit.qubits, "qubit") + ", found " +
                   std::to_string(readout.size()));
  }
  Circuit plain = circuit;  // other operations name qubits and bits as barriers would
  for (Operation& operation : plain.operations) {
    if (operation.is_of_programs()) operation.kind = OperationKind::barrier;
  }
  plain.validate();
  plain.require_bound();
  const Checker checker(*this, mixed);
  for (std::size_t i = 0; i < circuit.operations.size(); ++i) checker.check(i, circuit.operations[i]);
}

bool Program::has_histories() const {
  return is_unconditional(split_final_measurements(circuit).body, [](OperationKind kind) {
    return kind == OperationKind::channel || kind == OperationKind::reset;
  });
}

bool Program::has_gates_only() const {
  Circuit kept = circuit;
  std::erase_if(kept.operations, [](const Operation& operation) {
    return operation.kind == OperationKind::save || operation.kind == OperationKind::set_state;
  });
  return is_unconditional(split_final_measurements(kept).body,
                          [](OperationKind kind) { return kind == OperationKind::channel; });
}

}  // namespace onehop::quantum
