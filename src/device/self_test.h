// Compares the kernels of a device with those of this processor, and measures them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/device/device.h"

namespace onehop::device {

struct KernelCheck {
  std::string name;     // of the kernel, and what it does
  std::string against;  // what it was compared with
  std::string error;    // what differs; empty: nothing
};

// Runs every kernel on small inputs, codecs on numbers of all kinds, and compares every byte with the result of the
// processor's kernels, and decoded numbers with those of onehop's codecs. An error of the driver is an `error`, too.
[[nodiscard]] std::vector<KernelCheck> check_kernels(Device& device, bool quick);

struct Rate {
  std::string name;
  double value = 0;  // bytes of float32 numbers per second
  double limit = 0;  // the rate of a copy inside the device, which reads and writes every byte
};
// With arrays of `bytes` bytes.
[[nodiscard]] std::vector<Rate> measure_kernels(Device& device, std::int64_t bytes);

// Checks a device once in this process, in less than a second. Throws Error that names the kernel if it differs;
// ONEHOP_DEVICE_CHECK=0 skips it.
void check_at_first_use(Device& device);

}  // namespace onehop::device
