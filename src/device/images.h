// The kernels compiled for cards, as `make device` has embedded them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace onehop::device {

struct Image {
  std::string_view target;           // "sm_80", "gfx90a"
  std::string_view form;             // "ptx", "cubin" or "hsaco"
  std::span<const std::byte> bytes;  // of PTX, the last one is 0
};

// Empty if the library was built without images.
[[nodiscard]] std::span<const Image> images();

// What tools/device.py has packed: the number of bytes in 8 bytes, then sequences of LZ4's block format. Throws Error
// for packed bytes that end too early or mean another number.
[[nodiscard]] std::vector<std::byte> unpacked(std::span<const std::byte> packed);

}  // namespace onehop::device
