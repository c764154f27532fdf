// Circuits to place on ranks, and the qubits that a gate needs on local bits.
#pragma once

#include <cmath>
#include <cstddef>
#include <numbers>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "onehop/quantum/circuit.h"

namespace onehop::quantum::testing {

inline Circuit circuit_of(int qubits, std::vector<Operation> operations) {
  Circuit circuit;
  circuit.qubits = qubits;
  circuit.operations = std::move(operations);
  return circuit;
}

inline Circuit qft(int n) {
  Circuit c = circuit_of(n, {});
  for (int i = n - 1; i >= 0; --i) {
    c.operations.push_back(gate("h", {i}));
    for (int j = i - 1; j >= 0; --j) c.operations.push_back(gate("cp", {j, i}, {std::numbers::pi / (1 << (i - j))}));
  }
  for (int i = 0; i < n / 2; ++i) c.operations.push_back(gate("swap", {i, n - 1 - i}));
  return c;
}

inline Circuit qpe(int n) {
  const int counting = n - 1;
  Circuit c = circuit_of(n, {gate("x", {counting})});
  for (int i = 0; i < counting; ++i) c.operations.push_back(gate("h", {i}));
  for (int i = 0; i < counting; ++i) c.operations.push_back(gate("cp", {i, counting}, {0.1 * (1 << i)}));
  for (int i = 0; i < counting / 2; ++i) c.operations.push_back(gate("swap", {i, counting - 1 - i}));
  for (int i = 0; i < counting; ++i) {
    for (int j = 0; j < i; ++j) c.operations.push_back(gate("cp", {j, i}, {-std::numbers::pi / (1 << (i - j))}));
    c.operations.push_back(gate("h", {i}));
  }
  return c;
}

// Time evolution of the transverse-field Ising model on a grid of this width, with RZZ as such or as CX, RZ, CX.
inline Circuit tfim(int n, int width, int steps, bool by_cx) {
  Circuit c = circuit_of(n, {});
  const auto bond = [&](int i, int j) {
    if (!by_cx) return c.operations.push_back(gate("rzz", {i, j}, {0.1}));
    c.operations.push_back(gate("cx", {i, j}));
    c.operations.push_back(gate("rz", {j}, {0.1}));
    c.operations.push_back(gate("cx", {i, j}));
  };
  for (int s = 0; s < steps; ++s) {
    for (int i = 0; i < n; ++i) {
      if (i % width + 1 < width && i + 1 < n) bond(i, i + 1);
      if (i + width < n) bond(i, i + width);
    }
    for (int i = 0; i < n; ++i) c.operations.push_back(gate("rx", {i}, {0.2}));
  }
  return c;
}

inline Circuit random_circuit(int n, int gates, unsigned seed) {
  std::mt19937 random(seed);
  Circuit c = circuit_of(n, {});
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  for (int g = 0; g < gates; ++g) {
    const int a = below(n);
    const int b = (a + 1 + below(n - 1)) % n;
    switch (below(7)) {
      case 0:
        c.operations.push_back(gate("u", {a}, {0.3, 0.2, 0.1}));
        break;
      case 1:
        c.operations.push_back(gate("rx", {a}, {0.3}));
        break;
      case 2:
        c.operations.push_back(gate("cz", {a, b}));
        break;
      case 3:
        c.operations.push_back(gate("swap", {a, b}));
        break;
      case 4:
        c.operations.push_back(gate("iswap", {a, b}));
        break;
      case 5:
        c.operations.push_back(gate("rxx", {a, b}, {0.4}));
        break;
      default:
        c.operations.push_back(gate("cx", {a, b}));
        break;
    }
  }
  return c;
}

// The targets on which the gate is not diagonal, from the elements of its matrix.
inline std::set<int> must_be_local(const Operation& operation) {
  std::set<int> wires;
  if (operation.kind == OperationKind::diagonal || operation.kind == OperationKind::global_phase) return wires;
  const std::vector<Complex> m = matrix_of(operation);
  const std::size_t size = std::size_t{1} << operation.targets.size();
  const bool flips = size == 2 && operation.controls.empty() && std::abs(m[0]) < 1e-15 && std::abs(m[3]) < 1e-15;
  for (std::size_t r = 0; r < size && !flips; ++r) {
    for (std::size_t c = 0; c < size; ++c) {
      if (std::abs(m[r * size + c]) < 1e-15) continue;
      for (std::size_t t = 0; t < operation.targets.size(); ++t) {
        if (((r ^ c) >> t & 1U) != 0) wires.insert(operation.targets[t]);
      }
    }
  }
  return wires;
}

}  // namespace onehop::quantum::testing
