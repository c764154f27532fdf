// A schedule bound to a group and to arrays on the devices of its ranks. On a host a kernel packs messages into the
// memory of the receiver's device, and a kernel there unpacks them; nothing waits for the devices. Between hosts, and
// where devices do not reach each other, messages go through pinned memory and a `Plan` there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/device_windows.h"
#include "onehop/plan.h"
#include "onehop/schedule.h"
#include "src/device/device.h"
#include "src/device/slice_kernels.h"

namespace onehop::collectives {

// An array in the memory of a device.
struct DeviceArray {
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
};

// One thread at a time may use it. Keep it until all ranks have finished their last run: they write to its memory.
class DevicePlan {
 public:
  // Collective; every rank has a device of the same kind. `schedule` and `arrays` as for `Plan`; transfers copy
  // elements as they are, without combining or codecs. `error`: of the caller on this rank, which all ranks throw.
  // Throws BadInput for what a plan refuses, Mismatch if the schedules of two ranks disagree.
  DevicePlan(const Group& group, const Schedule& schedule, std::shared_ptr<device::Device> device,
             std::span<const DeviceArray> arrays, const std::string& error = {});
  DevicePlan(const DevicePlan&) = delete;
  DevicePlan& operator=(const DevicePlan&) = delete;

  // Launches what packs the first round, after what is in the stream.
  void start(const device::Stream& stream);
  // Launches the rest. What the schedule writes is there for what comes later in the stream. Through pinned memory it
  // waits for the stream and for other ranks. Throws as `Plan::finish`; then the plan cannot be used again.
  void finish(const device::Stream& stream);
  // Waits until the last run is done. Throws PeerLost if it was given up because a rank is gone.
  void wait() { windows_->wait(stream_); }

  [[nodiscard]] PlanCounters counters() const noexcept;
  // Of the device, or of pinned memory.
  [[nodiscard]] std::int64_t staging_bytes() const noexcept { return staging_bytes_; }
  // Why messages go through pinned memory; empty: they do not.
  [[nodiscard]] const std::string& reason() const noexcept { return windows_->no_path(); }
  [[nodiscard]] std::uint32_t groups() const noexcept { return groups_; }

 private:
  static constexpr std::uint32_t threads = 256;
  // What one message is on this rank, and, in the tables of all ranks, on others.
  struct Message {
    std::int32_t peer = 0;
    std::int32_t incoming = 0;
    std::int64_t round = 0;
    std::int64_t bytes = 0;
    std::int64_t payload = 0;  // without gaps
    std::int64_t wire = 0;     // where it begins among those that arrive, or that leave
    std::int64_t flags = 0;    // where its flags are in the window
    std::uint64_t signature = 0;
    std::uint64_t first_piece = 0, pieces = 0;
  };
  struct Launch {
    std::uint64_t first = 0;
    std::uint32_t count = 0;
  };

  void list_messages(const Schedule& schedule, std::span<const DeviceArray> arrays);
  void add_piece(const Slice& slice, std::int64_t element_bytes, const DeviceArray& array, std::int64_t wire);
  void place(Message message);
  // The messages of all ranks, after a check that each has another end.
  [[nodiscard]] std::vector<std::vector<Message>> agreed_messages() const;
  void prepare_kernels(const std::vector<std::vector<Message>>& all);
  void prepare_host(const std::vector<std::vector<Message>>& all);
  void upload_messages(std::vector<device::SliceMessage> messages);
  void launch(std::size_t round, bool packs, const device::Stream& stream);
  void require_no_capture(const device::Stream& stream) const;

  Group group_;
  std::shared_ptr<device::Device> device_;
  std::size_t rounds_ = 0;
  std::vector<Message> messages_;  // of each round, first those that leave
  std::vector<device::SlicePiece> pieces_;
  std::vector<std::int64_t> lists_;
  std::int64_t flag_bytes_ = 8 * std::int64_t{device::most_slice_groups};  // with the two words of every group
  std::int64_t incoming_bytes_ = 0, outgoing_bytes_ = 0, staging_bytes_ = 0;
  std::uint32_t groups_ = 1;
  std::vector<Launch> launches_;  // of each round: what packs, and what unpacks
  std::size_t last_launch_ = 0;
  device::Memory messages_there_, pieces_there_, lists_there_;
  std::optional<device::PinnedMemory> sent_, received_;  // without a path for kernels
  std::vector<Plan> plans_;                              // of each round, in that memory
  device::Stream stream_;                                // of the last launches
  bool is_running_ = false;
  PlanCounters per_run_;
  std::int64_t runs_ = 0;
  std::unique_ptr<DeviceWindows> windows_;  // the last member: it waits for kernels, which use the others
};

}  // namespace onehop::collectives
