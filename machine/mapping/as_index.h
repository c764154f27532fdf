// A number that is known not to be negative, as an index.
#pragma once

#include <cstddef>
#include <cstdint>

namespace onehop::detail {

[[nodiscard]] constexpr std::size_t as_index(std::int64_t number) { return static_cast<std::size_t>(number); }

}  // namespace onehop::detail
