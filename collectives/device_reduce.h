// Sums of arrays on the devices of a host, in one launch per rank, without a copy through the processor's memory. What
// the kernels do not take goes through it: device to pinned memory, an all-reduce there, and back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/device_windows.h"
#include "onehop/collectives/collectives.h"
#include "onehop/collectives/reduce_table.h"
#include "src/device/all_reduce.h"
#include "src/device/device.h"

namespace onehop::collectives {

// What a sum does with an array: `shots` of 0 means the path through the processor's memory, for the `reason`.
struct DeviceChoice {
  int shots = 0;
  std::uint32_t groups = 0;
  std::uint32_t tiles = 0;
  std::string reason;
};

// One thread at a time may use it. Every rank calls run() in the same order, with the same length, type and codec. The
// kernels do not compare these: a rank that calls another sum leaves wrong numbers or waits.
class DeviceReduce {
 public:
  // Collective; every rank has a device of the same kind. Ranks without a device path for their group use the
  // processor's memory for all arrays: ranks of several hosts, groups of other sizes than 2, 4 and 8, devices that
  // cannot map each other's memory. Errors of one rank are errors on all.
  DeviceReduce(const Collectives& collectives, std::shared_ptr<device::Device> device);
  DeviceReduce(const DeviceReduce&) = delete;
  DeviceReduce& operator=(const DeviceReduce&) = delete;

  // Adds the arrays of all ranks, in the order of ranks, after what is in the stream. Returns without waiting for the
  // device if the choice is a kernel. `source` and `target` may be the same; both are memory of the device. Throws
  // BadInput before anything is launched, PeerLost if a rank is known to be gone, and Error for an error of the driver,
  // after which the group is aborted. `shots` of 0: by the table of cards.
  void run(const device::Stream& stream, const void* source, void* target, const Reduction& reduction, int shots = 0);
  // Waits until the stream is done. Throws PeerLost if a sum was ended because a rank is gone: its target is undefined.
  // Timeout after the group's limit. The object cannot be used again then.
  void wait(const device::Stream& stream) { windows_->wait(stream); }

  [[nodiscard]] DeviceChoice choose(const Reduction& reduction, int shots = 0) const;
  [[nodiscard]] const ReduceTable& table() const noexcept { return table_; }
  [[nodiscard]] device::Device& device() const noexcept { return *device_; }

 private:
  static constexpr std::uint32_t window_groups = 64;
  static constexpr std::uint32_t threads = 256;

  void through_host(const device::Stream& stream, const void* source, void* target, const Reduction& reduction);

  Collectives collectives_;
  Group group_;
  std::shared_ptr<device::Device> device_;
  ReduceTable table_;
  std::unique_ptr<DeviceWindows> windows_;
  device::PinnedMemory staging_;  // of arrays that go through the processor's memory
};

}  // namespace onehop::collectives
