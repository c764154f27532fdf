// Conversion of the engine's pass summaries and profile entries to dictionaries.
#pragma once

#include "onehop/quantum/profile.h"
#include "python/bindings/bindings.h"

[[nodiscard]] nb::dict pass_dict(const onehop::quantum::PassSummary& pass);
[[nodiscard]] nb::dict profile_dict(const onehop::quantum::ProfileEntry& entry);
