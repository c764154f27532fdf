// The gates of a circuit that matter to observables.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "onehop/quantum/observable.h"
#include "onehop/quantum/placement.h"

namespace onehop::quantum {

class LightCone {
 public:
  // Finds the gates of a placement that matter to observables of its qubits at the end: any other one commutes with
  // what the gates after it make of the observables. Returns whether it had to search: not for the last observables.
  bool find(const Placement& placement, std::span<const PauliSum> sums);
  [[nodiscard]] bool has(int operation) const { return within_[static_cast<std::size_t>(operation)]; }
  [[nodiscard]] bool has_all() const;

 private:
  std::string letters_;  // of each wire at the end
  std::vector<bool> within_;
};

}  // namespace onehop::quantum
