// The processor as a device: memory that other processes can map, as that of cards, and kernels that run at once.
#include <unistd.h>

#include <cstring>
#include <limits>
#include <vector>

#include "onehop/error.h"
#include "src/base/clock.h"
#include "src/base/memory_left.h"
#include "src/device/device.h"
#include "src/device/kernels.h"
#include "src/group/shared_memory.h"

namespace onehop::device {
namespace {

// What a MemoryHandle of the processor holds.
struct Place {
  std::int32_t process = 0;
  std::int32_t descriptor = -1;
};

Memory memory_of(const detail::SharedMemory& shared, std::int64_t bytes) {
  return {std::shared_ptr<std::byte>(shared.data(), [shared](std::byte*) {}), bytes};
}

class Processor : public Device {
 public:
  Processor() : Device(Kind::processor, 0) {
    describe("processor", std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE));
  }

  std::int64_t free_memory() override { return detail::available_memory(); }
  Memory allocate(std::int64_t bytes) override {
    if (bytes < 0) throw BadInput("expected a number of bytes of at least 0, found " + std::to_string(bytes));
    return memory_of(detail::SharedMemory::create(std::max<std::int64_t>(bytes, 1), "memory of a device"), bytes);
  }
  PinnedMemory allocate_pinned(std::int64_t bytes) override {
    Memory host = allocate(bytes);
    return {host, host.data()};
  }

  Stream make_stream() override { return {}; }
  void synchronize(const Stream& /*stream*/) override {}
  bool is_done(const Stream& /*stream*/) override { return true; }

  void copy_in(const Stream& stream, std::byte* to, const void* from, std::int64_t bytes) override {
    copy(stream, to, static_cast<const std::byte*>(from), bytes);
  }
  void copy_out(const Stream& stream, void* to, const std::byte* from, std::int64_t bytes) override {
    copy(stream, static_cast<std::byte*>(to), from, bytes);
  }
  void copy(const Stream& /*stream*/, std::byte* to, const std::byte* from, std::int64_t bytes) override {
    if (bytes > 0) std::memmove(to, from, static_cast<std::size_t>(bytes));
  }
  void fill(const Stream& /*stream*/, std::byte* to, std::byte value, std::int64_t bytes) override {
    if (bytes > 0) std::memset(to, static_cast<int>(value), static_cast<std::size_t>(bytes));
  }

  void launch(const Stream& /*stream*/, std::string_view name, const Shape& shape, const void* arguments,
              std::size_t bytes) override {
    check_arguments(name, bytes);
    const Kernel& kernel = find_kernel(name);
    std::vector<Wide> shared(shape.shared_bytes / sizeof(Wide) + 1);  // kernels need an alignment of 16 bytes
    for (std::uint32_t group = 0; group < shape.groups; ++group)
      kernel.run_group(shape, group, arguments, reinterpret_cast<std::byte*>(shared.data()));
  }
  std::uint32_t resident_groups(std::string_view /*kernel*/, const Shape& /*shape*/) override {
    return 16;  // groups run one after the other and never wait for each other: any number would do
  }

  void record(const Stream& /*stream*/, Event& event, bool /*keeps_time*/) override {
    event = Event(std::make_shared<double>(base::steady_seconds()));
  }
  void wait(const Stream& /*stream*/, const Event& /*event*/) override {}
  double seconds_between(const Event& begin, const Event& end) override {
    return *static_cast<const double*>(end.native()) - *static_cast<const double*>(begin.native());
  }

  MemoryHandle handle_of(const Memory& memory) override {
    const auto bytes = static_cast<std::size_t>(memory.bytes());
    const auto shared = detail::SharedMemory::holding({memory.data(), std::max<std::size_t>(bytes, 1)});
    const Place place{getpid(), shared.fd()};
    MemoryHandle handle;
    std::memcpy(handle.bytes.data(), &place, sizeof place);
    return handle;
  }
  Memory map(const MemoryHandle& handle, std::int64_t bytes) override {
    Place place;
    std::memcpy(&place, handle.bytes.data(), sizeof place);
    return memory_of(detail::SharedMemory::open(place.process, place.descriptor, bytes), bytes);
  }
};

}  // namespace

std::shared_ptr<Device> Device::processor() {
  static const std::shared_ptr<Device> device = std::make_shared<Processor>();
  return device;
}

}  // namespace onehop::device
