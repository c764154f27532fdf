// The version of the library, "major.minor.patch", as the build file says it.
#pragma once

namespace onehop {

[[nodiscard]] const char* version() noexcept;

}  // namespace onehop
