// The entry points of cards. tools/device.sh compiles this file for every kind of card; for processors it is empty.
#include "src/device/team.h"

#ifdef ONEHOP_CARD
#include "src/device/all_kernels.h"

#ifdef __NVPTX__
#define ONEHOP_ENTRY extern "C" __attribute__((nvptx_kernel))
#else
#define ONEHOP_ENTRY extern "C" __attribute__((amdgpu_kernel))
#endif
#define ONEHOP_KERNEL(name, Arguments, ...)                              \
  ONEHOP_ENTRY void onehop_##name(onehop::device::Arguments arguments) { \
    using namespace onehop::device;                                      \
    CardTeam team;                                                       \
    __VA_ARGS__(team, arguments);                                        \
  }
#include "src/device/kernel_list.inc"
#endif
