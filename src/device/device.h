// A device that runs kernels: a card behind the driver interface of CUDA or HIP, which is loaded at run time, or this
// processor, on which the same kernels run for tests. Memory of a device is addressed by std::byte*; the processor may
// read and write it only if the device is the processor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "src/device/team.h"

namespace onehop::device {

enum class Kind { processor, cuda, hip };

[[nodiscard]] std::string_view name_of(Kind kind);

// Memory that is freed with the last copy of this handle.
class Memory {
 public:
  Memory() = default;
  Memory(std::shared_ptr<std::byte> begin, std::int64_t bytes) : begin_(std::move(begin)), bytes_(bytes) {}
  [[nodiscard]] std::byte* data() const noexcept { return begin_.get(); }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

 private:
  std::shared_ptr<std::byte> begin_;
  std::int64_t bytes_ = 0;
};

// Memory of this process that kernels reach, too. The two addresses may differ.
struct PinnedMemory {
  Memory host;
  std::byte* on_device = nullptr;
};

// Work that a device does in order. Copies share the queue; one that a caller owns (`Device::wrap`) is left to it.
class Stream {
 public:
  Stream() = default;  // the default stream of a device
  explicit Stream(std::shared_ptr<void> native) : native_(std::move(native)) {}
  [[nodiscard]] void* native() const noexcept { return native_.get(); }

 private:
  std::shared_ptr<void> native_;
};

// A place in a stream.
class Event {
 public:
  Event() = default;
  explicit Event(std::shared_ptr<void> native) : native_(std::move(native)) {}
  [[nodiscard]] void* native() const noexcept { return native_.get(); }

 private:
  std::shared_ptr<void> native_;
};

// Names memory of a device for other processes of this machine.
struct MemoryHandle {
  std::array<std::byte, 64> bytes{};
};

// Memory of a device for the other ranks of a host.
struct SharedPlace {
  std::uint64_t process = 0;  // random, so that no process of another host or container has the same
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t index = 0;   // of the device
  std::int32_t owner = 0;   // the number of the process
  std::int32_t users = -1;  // the descriptor of the list of processes that map it; -1: they need not be known
  MemoryHandle handle;
};

// A handle of CUDA names whole blocks of so many bytes, of which smaller memory may be a part.
inline constexpr std::int64_t shared_block = std::int64_t{1} << 21;

// Errors of a driver are thrown as Error with its name for the error, the call, and the device. All functions may be
// called from several threads.
class Device : public std::enable_shared_from_this<Device> {
 public:
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  // Runs kernels in the calling thread, within `launch`.
  [[nodiscard]] static std::shared_ptr<Device> processor();
  // Card `index` as the driver numbers them, the same object every time. Throws Error without a driver or with one that
  // is too old, for a card for which there is no image, and BadInput for a number that no card has.
  [[nodiscard]] static std::shared_ptr<Device> cuda(int index = 0);
  [[nodiscard]] static std::shared_ptr<Device> hip(int index = 0);
  // The device of a name such as "cuda", "hip:1" or "processor". Throws BadInput for another name.
  [[nodiscard]] static std::shared_ptr<Device> named(const std::string& name);
  // The number of cards of a kind; 0 and a reason if their driver cannot be used.
  [[nodiscard]] static int count(Kind kind, std::string& reason);

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] int index() const noexcept { return index_; }
  [[nodiscard]] const std::string& model() const noexcept { return model_; }  // as the driver names it
  [[nodiscard]] std::int64_t memory() const noexcept { return memory_; }      // bytes
  // "cuda:0 (NVIDIA H100)"
  [[nodiscard]] std::string text() const;

  [[nodiscard]] virtual std::int64_t free_memory() = 0;
  // Aligned to 256 bytes, not zeroed. Throws Error with the free amount if there is too little.
  [[nodiscard]] virtual Memory allocate(std::int64_t bytes) = 0;
  // The same for memory that kernels of several cards write and read while they run: of AMD's cards it is not cached.
  [[nodiscard]] virtual Memory allocate_for_peers(std::int64_t bytes) { return allocate(bytes); }
  // Zeroed.
  [[nodiscard]] virtual PinnedMemory allocate_pinned(std::int64_t bytes) = 0;
  // The number of the card of a kind that holds `address`, -1: none. Makes no context on any card.
  [[nodiscard]] static int holder(Kind kind, const void* address);

  [[nodiscard]] virtual Stream make_stream() = 0;
  [[nodiscard]] static Stream wrap(void* native) {
    return Stream(std::shared_ptr<void>(native, [](void*) {}));
  }
  // Waits until the work of the stream is done.
  virtual void synchronize(const Stream& stream) = 0;
  virtual void synchronize_all() {}  // of all streams
  [[nodiscard]] virtual bool is_done(const Stream& stream) = 0;

  // Copies and fills in the order of a stream. Memory of the processor must stay, and must not be changed or read,
  // until the copy is done.
  virtual void copy_in(const Stream& stream, std::byte* to, const void* from, std::int64_t bytes) = 0;
  virtual void copy_out(const Stream& stream, void* to, const std::byte* from, std::int64_t bytes) = 0;
  virtual void copy(const Stream& stream, std::byte* to, const std::byte* from, std::int64_t bytes) = 0;
  virtual void fill(const Stream& stream, std::byte* to, std::byte value, std::int64_t bytes) = 0;

  // Launches a kernel of kernels.h. `arguments` are copied. Throws BadInput for a name that is not in the table or
  // arguments of another size, Error if the image lacks the kernel.
  virtual void launch(const Stream& stream, std::string_view kernel, const Shape& shape, const void* arguments,
                      std::size_t bytes) = 0;
  template <class Arguments>
  void launch(const Stream& stream, std::string_view kernel, const Shape& shape, const Arguments& arguments) {
    launch(stream, kernel, shape, &arguments, sizeof arguments);
  }
  // The number of groups of a kernel that the device runs at a time: groups that wait for others must not be more.
  [[nodiscard]] virtual std::uint32_t resident_groups(std::string_view kernel, const Shape& shape) = 0;

  // Events: recorded in a stream, on which another stream may wait; seconds between two that are done and keep time.
  [[nodiscard]] Event record(const Stream& stream) {
    Event event;
    record(stream, event, true);
    return event;
  }
  // Makes the event if it is none.
  virtual void record(const Stream& stream, Event& event, bool keeps_time = false) = 0;
  virtual void wait(const Stream& stream, const Event& event) = 0;
  [[nodiscard]] virtual double seconds_between(const Event& begin, const Event& end) = 0;

  // Whether the work of a stream is captured in a graph. Then it must not wait for that of others, nor they for it.
  [[nodiscard]] virtual bool is_capturing(const Stream& /*stream*/) { return false; }

  // Memory of another rank's device of the same kind: mapped if that is another process, or as it is if the ranks are
  // threads which share the device. It has at least `shared_block` bytes and one handle, and must live until they have
  // reached it. A driver does not say what happens to memory that is freed while it is mapped, so what is shared is
  // freed once nobody maps it, or who does has ended.
  [[nodiscard]] SharedPlace share(Memory& memory);
  [[nodiscard]] Memory reach(const SharedPlace& place);
  // Frees what nobody maps any more. Returns whether others still map what this process does not need.
  static bool free_unmapped();
  static void free_soon();  // the same, in the background
  // Memory from `allocate` for other processes, which map it with a device of the same kind. It must outlive them.
  [[nodiscard]] virtual MemoryHandle handle_of(const Memory& memory) = 0;
  [[nodiscard]] virtual Memory map(const MemoryHandle& handle, std::int64_t bytes) = 0;

 protected:
  Device(Kind kind, int index) : kind_(kind), index_(index) {}
  void describe(std::string model, std::int64_t memory) {
    model_ = std::move(model);
    memory_ = memory;
  }

 private:
  Kind kind_;
  int index_;
  std::string model_;
  std::int64_t memory_ = 0;
};

// Throws BadInput unless the kernel exists and takes this many bytes of arguments.
void check_arguments(std::string_view kernel, std::size_t bytes);

}  // namespace onehop::device
