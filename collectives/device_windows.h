// Memory on the device of every rank of a host that the kernels of all ranks write to and read while they run.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "onehop/group.h"
#include "src/device/device.h"

namespace onehop::collectives {

class DeviceWindows {
 public:
  // What a rank offers the others.
  struct Offer {
    std::int64_t bytes = 0;            // of its window
    std::uint32_t groups = 1;          // the most of a launch
    std::vector<std::string> kernels;  // that wait for other ranks
    device::Shape shape;               // of their launches
    std::string doing;                 // what this rank does with the others, for errors
    std::string no_path;          // why this group has no device path, the same on all ranks; empty: it may have one
    std::vector<std::byte> more;  // for the callers on the other ranks
    std::string error;            // of the caller on this rank, which all ranks throw
  };
  // Collective; every rank has a device of the same kind. Errors of one rank are errors on all.
  DeviceWindows(const Group& group, std::shared_ptr<device::Device> device, const Offer& offer);
  // Waits for kernels that still run; their waits end if a rank is lost, after a failure, or at the group's time limit.
  ~DeviceWindows();
  DeviceWindows(const DeviceWindows&) = delete;
  DeviceWindows& operator=(const DeviceWindows&) = delete;

  // Why kernels do not reach the windows; empty: they do.
  [[nodiscard]] const std::string& no_path() const noexcept { return no_path_; }
  // The most groups of a launch that waits for other ranks.
  [[nodiscard]] std::uint32_t groups() const noexcept { return groups_; }
  [[nodiscard]] const device::Memory& own() const noexcept { return own_; }
  [[nodiscard]] std::byte* of(int rank) const { return windows_[static_cast<std::size_t>(rank)].data(); }
  [[nodiscard]] std::span<const std::byte> more(int rank) const { return more_[static_cast<std::size_t>(rank)]; }
  // A word that is not 0 once kernels have to end, and one that they set when they do.
  [[nodiscard]] std::uint32_t* stop_words() const { return reinterpret_cast<std::uint32_t*>(stop_.on_device); }

  // Does work that launches kernels in a stream, after what was launched in others; in a graph that is captured, its
  // user orders it. Throws PeerLost if a rank is known to be gone. After an Error other than Mismatch nothing can be
  // used again, kernels end, and the group is aborted.
  void run(const device::Stream& stream, const std::function<void()>& work);
  // Waits until the stream is done. Throws PeerLost if a kernel gave up because a rank is gone; Timeout after the
  // group's limit.
  void wait(const device::Stream& stream);

 private:
  struct Header;
  void prepare(const Offer& offer, Header& header);
  void map(const std::vector<Header>& headers, Header& mapped);
  [[nodiscard]] std::vector<Header> exchange(const Header& own, std::span<const std::byte> more);
  void watch();
  void stop() noexcept;
  [[nodiscard]] bool is_lost();
  [[nodiscard]] bool has_given_up() const noexcept;
  [[noreturn]] void throw_lost();
  void guarded(const std::function<void()>& work);

  Group group_;
  std::shared_ptr<device::Device> device_;
  std::string doing_;
  std::string no_path_;
  std::string broken_;  // why it cannot be used any more
  std::uint32_t groups_ = 1;
  device::Memory own_;                   // freed once no other rank maps it
  std::vector<device::Memory> windows_;  // of all ranks
  device::PinnedMemory stop_;            // two words
  device::Event last_;                   // behind the last launch, unless it was captured
  bool was_captured_ = false;            // any launch
  std::vector<std::vector<std::byte>> more_;

  std::mutex mutex_;
  std::condition_variable ending_;
  bool ends_ = false;
  int lost_ = -1;
  std::chrono::steady_clock::time_point stops_at_ = std::chrono::steady_clock::time_point::max();
  std::thread watcher_;
};

}  // namespace onehop::collectives
