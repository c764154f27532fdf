// The table of all kernels, as processors run them (`Device::processor`, tests). A kernel is a template (team.h), a
// struct of its arguments, and a line in kernel_list.inc, from which the table and the entry points of cards
// (entries.cc) follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "src/device/team.h"

namespace onehop::device {

struct Kernel {
  std::string_view name;  // as in the images, for example "onehop_encode_q8"
  std::size_t argument_bytes = 0;
  // Runs one group on the calling thread. `shared` has shape.shared_bytes bytes, aligned to 16.
  void (*run_group)(const Shape& shape, std::uint32_t group, const void* arguments, std::byte* shared) = nullptr;
};

[[nodiscard]] std::span<const Kernel> kernels();

// Throws BadInput for a name that is not in the table.
[[nodiscard]] const Kernel& find_kernel(std::string_view name);

}  // namespace onehop::device
