// What of circuits and observables goes into a fingerprint.
#pragma once

#include "onehop/quantum/program.h"
#include "quantum/state/pauli_masks.h"
#include "src/base/fingerprint.h"
#include "src/group/require_same.h"

namespace onehop::quantum {

using base::Fingerprint;
using base::hash_of;
using base::Key;
using onehop::detail::Argument;
using onehop::detail::require_same;

void add_to(Fingerprint& print, const Operation& operation);
void add_to(Fingerprint& print, const Circuit& circuit);
void add_to(Fingerprint& print, const Channel& channel);
void add_to(Fingerprint& print, const Save& save);

// Throw Mismatch unless all ranks simulate or run the same. Collective.
void check_same(const Group& group, const Argument& what, const SimulationOptions& options, const Key& others = {});
void check_same(const Group& group, const Circuit& circuit, std::span<const Channel> channels, std::uint64_t seed);

}  // namespace onehop::quantum
