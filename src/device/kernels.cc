#include "src/device/kernels.h"

#include <array>

#include "onehop/error.h"
#include "src/device/all_kernels.h"

namespace onehop::device {
namespace {

// The function is a template of the team, so that the table calls it from a lambda.
#define ONEHOP_KERNEL(name, Arguments, ...)                                                      \
  Kernel{"onehop_" #name, sizeof(Arguments),                                                     \
         [](const Shape& shape, std::uint32_t group, const void* arguments, std::byte* shared) { \
           LoopTeam team(shape, group, shared);                                                  \
           __VA_ARGS__(team, *static_cast<const Arguments*>(arguments));                         \
         }},
constexpr std::array table{
#include "src/device/kernel_list.inc"
};
#undef ONEHOP_KERNEL

}  // namespace

std::span<const Kernel> kernels() { return table; }

const Kernel& find_kernel(std::string_view name) {
  for (const Kernel& kernel : table) {
    if (kernel.name == name) return kernel;
  }
  throw BadInput("expected the name of a kernel, such as 'onehop_encode_q8', found '" + std::string(name) + "'");
}

}  // namespace onehop::device
