// Copy functions from private memory into a slot. Chosen when a channel or plan is made; called on the fast path.
#pragma once

#include <cstddef>
#include <span>

#include "onehop/channel.h"

namespace onehop::detail {

// Copies n bytes. When it returns, a release store orders the copy before it (non-temporal stores are fenced).
using StoreFunction = void (*)(std::byte* to, const std::byte* from, std::size_t n);

// The function for this processor.
[[nodiscard]] StoreFunction store_function(StoreKind kind);

// The same without the fence, for several pieces in a row: finish_stores(kind) must come after the last and before the
// release store. A fence waits until all lines have left the core, which takes longer than the copy of a piece of 1 KiB
// itself.
[[nodiscard]] StoreFunction piece_function(StoreKind kind);
void finish_stores(StoreKind kind) noexcept;

}  // namespace onehop::detail

namespace onehop {

// The same for single calls.
inline void store_bytes(StoreKind kind, std::byte* to, std::span<const std::byte> from) {
  detail::store_function(kind)(to, from.data(), from.size());
}
inline void store_piece(StoreKind kind, std::byte* to, std::span<const std::byte> from) {
  detail::piece_function(kind)(to, from.data(), from.size());
}
inline void finish_pieces(StoreKind kind) noexcept { detail::finish_stores(kind); }

}  // namespace onehop
