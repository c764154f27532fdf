// The kernels compiled for cards, as `make device` has embedded them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace onehop::device {

struct Image {
  std::string_view target;           // "sm_80", "gfx90a"
  std::string_view form;             // "ptx", "cubin" or "hsaco"
  std::span<const std::byte> bytes;  // of PTX, the last one is 0
};

// Empty if the library was built without images.
[[nodiscard]] std::span<const Image> images();

}  // namespace onehop::device
