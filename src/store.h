// How bytes get from private memory into a slot. Chosen when a channel or plan is made; called on the fast path.
#pragma once

#include <cstddef>

#include "onehop/channel.h"

namespace onehop::detail {

// Copies n bytes. When it returns, a release store orders the copy before it (non-temporal stores are fenced).
using StoreFunction = void (*)(std::byte* to, const std::byte* from, std::size_t n);

// The function for this processor.
[[nodiscard]] StoreFunction store_function(StoreKind kind);

}  // namespace onehop::detail
