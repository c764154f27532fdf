// SHA-256 (FIPS 180-4), for names that must not reveal their source.
#pragma once

#include <string>
#include <string_view>

namespace onehop::detail {

// Returns the digest as 64 hexadecimal digits.
[[nodiscard]] std::string sha256(std::string_view text);

}  // namespace onehop::detail
