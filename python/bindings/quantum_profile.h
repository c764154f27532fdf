// What the engine groups and writes down, as dictionaries.
#pragma once

#include "onehop/quantum/profile.h"
#include "python/bindings/bindings.h"

[[nodiscard]] nb::dict pass_dict(const onehop::quantum::PassSummary& pass);
[[nodiscard]] nb::dict profile_dict(const onehop::quantum::ProfileEntry& entry);
