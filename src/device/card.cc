// Cards behind the driver interfaces of CUDA and HIP.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "src/base/env.h"
#include "src/base/regular_file.h"
#include "src/base/text.h"
#include "src/device/driver.h"
#include "src/device/images.h"

namespace onehop::device {
namespace {

constexpr int cuda_processors = 16;  // of attribute, as the next three
constexpr int hip_processors = 63;
constexpr int cuda_major = 75;  // of the compute capability
constexpr int cuda_minor = 76;
constexpr int device_ordinal = 9;                   // of pointer_attribute
constexpr int most_shared_memory = 8;               // of set_function_attribute
constexpr std::uint32_t plain_shared = 48U << 10U;  // a CUDA kernel must ask for more
constexpr unsigned lazy_peer_access = 1;
constexpr unsigned stream_non_blocking = 1;  // does not wait for the default stream
constexpr unsigned event_without_time = 2;

class Card : public Device {
 public:
  Card(const Driver& driver, int index) : Device(driver.kind, index), driver_(driver) {
    std::array<char, 256> model{};
    std::size_t memory = 0;
    call(driver_.get, &number_, index);
    call(driver_.model, model.data(), static_cast<int>(model.size()), number_);
    describe(model.data(), 0);
    call(driver_.total_memory, &memory, number_);
    describe(model.data(), static_cast<std::int64_t>(memory));
    call(driver_.attribute, &processors_, kind() == Kind::cuda ? cuda_processors : hip_processors, number_);
    if (kind() == Kind::cuda) call(driver_.retain_context, &context_, number_);
    load_image();
  }

  std::int64_t free_memory() override {
    free_unmapped();
    const Current current(*this);
    std::size_t free = 0;
    std::size_t total = 0;
    call(driver_.memory_info, &free, &total);
    return static_cast<std::int64_t>(free);
  }

  Memory allocate(std::int64_t bytes) override { return allocate(bytes, false); }
  Memory allocate_for_peers(std::int64_t bytes) override { return allocate(bytes, kind() == Kind::hip); }

  Memory allocate(std::int64_t bytes, bool uncached) {
    if (bytes < 0) throw BadInput("expected a number of bytes of at least 0, found " + std::to_string(bytes));
    std::int64_t free = free_memory();
    for (int i = 0; bytes > free && i < 100 && free_unmapped(); ++i) {  // until the other ranks are as far as this one
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      free = free_memory();
    }
    if (bytes > free) {
      throw Error("expected " + base::bytes_text(bytes) + " of free memory on " + text() + ", found " +
                  base::bytes_text(free));
    }
    const Current current(*this);
    void* at = nullptr;
    const auto length = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
    constexpr unsigned not_cached = 3;
    if (uncached) {
      call(driver_.allocate_uncached, &at, length, not_cached);
    } else {
      call(driver_.allocate, &at, length);
    }
    return {owned<std::byte>(at, driver_.free), bytes};
  }

  PinnedMemory allocate_pinned(std::int64_t bytes) override {
    const Current current(*this);
    void* at = nullptr;
    void* on_device = nullptr;
    constexpr unsigned portable_mapped = 3;
    constexpr unsigned coherent = 0x40000000;  // of HIP: the processor and a running kernel see what the other writes
    call(driver_.allocate_pinned, &at, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)),
         kind() == Kind::cuda ? portable_mapped : portable_mapped | coherent);
    PinnedMemory found;
    found.host = {owned<std::byte>(at, driver_.free_pinned), bytes};
    call(driver_.pinned_on_device, &on_device, at, 0U);
    found.on_device = static_cast<std::byte*>(on_device);
    std::fill_n(found.host.data(), bytes, std::byte{0});
    return found;
  }

  Stream make_stream() override {
    const Current current(*this);
    void* stream = nullptr;
    call(driver_.make_stream, &stream, stream_non_blocking);
    return Stream(owned<void>(stream, driver_.destroy_stream));
  }
  void synchronize(const Stream& stream) override { here(driver_.synchronize, stream.native()); }
  void synchronize_all() override { here(driver_.synchronize_all); }
  bool is_done(const Stream& stream) override {
    const Current current(*this);
    const int code = driver_.query.function(stream.native());
    if (code != not_ready) check(code, driver_.query.name);
    return code == 0;
  }

  void copy_in(const Stream& stream, std::byte* to, const void* from, std::int64_t bytes) override {
    if (bytes > 0) here(driver_.copy_in, to, from, static_cast<std::size_t>(bytes), stream.native());
  }
  void copy_out(const Stream& stream, void* to, const std::byte* from, std::int64_t bytes) override {
    if (bytes > 0) here(driver_.copy_out, to, from, static_cast<std::size_t>(bytes), stream.native());
  }
  void copy(const Stream& stream, std::byte* to, const std::byte* from, std::int64_t bytes) override {
    if (bytes > 0) here(driver_.copy, to, from, static_cast<std::size_t>(bytes), stream.native());
  }
  void fill(const Stream& stream, std::byte* to, std::byte value, std::int64_t bytes) override {
    if (bytes > 0)
      here(driver_.fill, to, static_cast<unsigned char>(value), static_cast<std::size_t>(bytes), stream.native());
  }

  void launch(const Stream& stream, std::string_view kernel, const Shape& shape, const void* arguments,
              std::size_t bytes) override {
    check_arguments(kernel, bytes);
    void* const function = function_of(kernel, shape);
    void* parameter = const_cast<void*>(arguments);
    here(driver_.launch, function, shape.groups, 1U, 1U, shape.threads, 1U, 1U, shape.shared_bytes, stream.native(),
         &parameter, nullptr);
  }

  // Asking for it loads the kernel, too: a driver that loads kernels when they are first launched could not do so while
  // another one waits for it.
  std::uint32_t resident_groups(std::string_view kernel, const Shape& shape) override {
    void* const function = function_of(kernel, shape);
    int per_processor = 0;
    here(driver_.resident, &per_processor, function, static_cast<int>(shape.threads), std::size_t{shape.shared_bytes});
    return static_cast<std::uint32_t>(per_processor * processors_);
  }

  void record(const Stream& stream, Event& event, bool keeps_time) override {
    const Current current(*this);
    if (event.native() == nullptr) {
      void* native = nullptr;
      call(driver_.make_event, &native, keeps_time ? 0U : event_without_time);
      event = Event(owned<void>(native, driver_.destroy_event));
    }
    call(driver_.record, event.native(), stream.native());
  }
  // The default stream of a program that captures another one says so by an error.
  bool is_capturing(const Stream& stream) override {
    const Current current(*this);
    int status = 0;
    return driver_.capturing.function(stream.native(), &status) != 0 || status != 0;
  }
  void wait(const Stream& stream, const Event& event) override {
    here(driver_.wait, stream.native(), event.native(), 0U);
  }
  double seconds_between(const Event& begin, const Event& end) override {
    float milliseconds = 0;
    here(driver_.elapsed, &milliseconds, begin.native(), end.native());
    return milliseconds * 1e-3;
  }

  MemoryHandle handle_of(const Memory& memory) override {
    MemoryHandle handle;
    here(driver_.handle, &handle, static_cast<void*>(memory.data()));
    return handle;
  }
  Memory map(const MemoryHandle& handle, std::int64_t bytes) override {
    const Current current(*this);
    void* at = nullptr;
    call(driver_.map, &at, handle, lazy_peer_access);
    return {owned<std::byte>(at, driver_.unmap), bytes};
  }

 private:
  // Makes the card the one that the calling thread's calls are for, and restores the caller's.
  class Current {
   public:
    explicit Current(const Card& card) : card_(card) {
      const Driver& driver = card.driver_;
      if (driver.kind == Kind::cuda) {
        card.call(driver.push_context, card.context_);
      } else {
        card.call(driver.current_card, &before_);
        if (before_ != card.number_) card.call(driver.make_current, card.number_);
      }
    }
    ~Current() {
      void* context = nullptr;
      const Driver& driver = card_.driver_;
      if (driver.kind == Kind::cuda) {
        driver.pop_context.function(&context);
      } else if (before_ != card_.number_) {
        driver.make_current.function(before_);
      }
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const Card& card_;
    int before_ = 0;
  };

  void check(int code, const char* name) const {
    if (code == 0) return;
    throw Error(text() + ": " + driver_.error_name(code) + " from " + name);
  }
  template <class... Parameters, class... Arguments>
  void call(const Call<Parameters...>& to, Arguments... arguments) const {
    check(to.function(static_cast<Parameters>(arguments)...), to.name);
  }
  template <class... Parameters, class... Arguments>
  void here(const Call<Parameters...>& to, Arguments... arguments) const {
    const Current current(*this);
    call(to, arguments...);
  }
  // What a call has made, until `freeing` frees it. It keeps the card. Freeing has nobody to report an error to.
  template <class T>
  std::shared_ptr<T> owned(void* made, const Call<void*>& freeing) {
    return {static_cast<T*>(made), [card = std::static_pointer_cast<Card>(shared_from_this()), &freeing](void* at) {
              try {
                const Current current(*card);
                freeing.function(at);
              } catch (const Error&) {
                return;  // the driver has ended before this process
              }
            }};
  }

  void load_image();
  [[nodiscard]] std::vector<Image> images_to_try() const;
  void* function_of(std::string_view kernel, const Shape& shape);

  struct Function {
    void* native = nullptr;
    std::uint32_t shared_bytes = plain_shared;
  };
  const Driver& driver_;
  int number_ = -1;
  int processors_ = 1;
  void* context_ = nullptr;
  void* module_ = nullptr;
  std::string loaded_;  // the image
  std::vector<std::byte> own_image_;
  std::mutex mutex_;
  std::map<std::string, Function, std::less<>> functions_;
};

// Those of this kind of card that may run on it, the best first.
std::vector<Image> Card::images_to_try() const {
  int major = 0;
  int minor = 0;
  if (kind() == Kind::cuda) {
    call(driver_.attribute, &major, cuda_major, number_);
    call(driver_.attribute, &minor, cuda_minor, number_);
  }
  const int own = 10 * major + minor;
  std::multimap<int, Image> found;  // the best last
  for (const Image& image : images()) {
    if ((image.form == "hsaco") != (kind() == Kind::hip)) continue;
    int target = 0;
    if (kind() == Kind::cuda)
      std::from_chars(image.target.data() + 3, image.target.data() + image.target.size(), target);  // "sm_90"
    const bool is_text = image.form == "ptx";
    const bool fits = kind() == Kind::hip || (target <= own && (is_text || target / 10 == major));
    if (fits) found.emplace(2 * target + (is_text ? 0 : 1), image);
  }
  std::vector<Image> sorted;
  for (const auto& [order, image] : found) sorted.insert(sorted.begin(), image);
  if (sorted.empty() && kind() == Kind::cuda && !images().empty() && own < 80) {
    throw Error("expected a card of compute capability 8.0 or more, found " + text() + " with " +
                std::to_string(major) + "." + std::to_string(minor));
  }
  return sorted;
}

void Card::load_image() {
  std::vector<Image> to_try;
  if (const auto path = env::text("ONEHOP_DEVICE_IMAGE")) {
    const detail::FileText file = detail::read_regular_file(*path, std::size_t{1} << 30U);
    if (file.text.value_or("").empty()) {
      throw BadInput("ONEHOP_DEVICE_IMAGE: expected a file with an image, found '" + *path + "' " + file.problem);
    }
    const auto all = std::as_bytes(std::span(*file.text));
    own_image_.assign(all.begin(), all.end());
    own_image_.push_back(std::byte{0});
    to_try.push_back({"the file of ONEHOP_DEVICE_IMAGE", "", own_image_});
  } else {
    to_try = images_to_try();
  }
  std::string tried;
  const Current current(*this);
  for (const Image& image : to_try) {
    const int code = driver_.load_module.function(&module_, image.bytes.data());
    loaded_ = image.target;
    if (code == 0) return;
    tried += (tried.empty() ? "" : ", ") + std::string(image.target) + ": " + driver_.error_name(code);
  }
  if (tried.empty()) {
    throw Error("expected kernels for " + std::string(name_of(kind())) +
                " in this build of onehop, found none: run `make device` and build again, or install the wheel");
  }
  throw Error("expected a card that runs one of the images of this build, found " + text() + " (" + tried + " from " +
              driver_.load_module.name + ")");
}

void* Card::function_of(std::string_view kernel, const Shape& shape) {
  const std::lock_guard guard(mutex_);
  auto found = functions_.find(kernel);
  if (found == functions_.end()) {
    Function function;
    const std::string name(kernel);
    const Current current(*this);
    if (const int code = driver_.function.function(&function.native, module_, name.c_str()); code != 0) {
      throw Error("expected the kernel " + name + " in the image " + loaded_ + " for " + text() + ", found none (" +
                  driver_.error_name(code) + " from " + driver_.function.name + "): build the images again");
    }
    found = functions_.emplace(name, function).first;
  }
  Function& function = found->second;
  if (kind() == Kind::cuda && shape.shared_bytes > function.shared_bytes) {
    here(driver_.set_function_attribute, function.native, most_shared_memory, static_cast<int>(shape.shared_bytes));
    function.shared_bytes = shape.shared_bytes;
  }
  return function.native;
}

// The cards that have been used. They live as long as the process.
std::shared_ptr<Device> card(Kind kind, int index) {
  static std::mutex mutex;
  static auto& cards = *new std::map<std::pair<const Driver*, int>, std::shared_ptr<Device>>;
  std::string reason;
  const int count = Device::count(kind, reason);
  if (count == 0) throw Error("expected a card for device=\"" + std::string(name_of(kind)) + "\": " + reason);
  if (index < 0 || index >= count) {
    throw BadInput("expected a number of a card from 0 to " + std::to_string(count - 1) + ", found " +
                   std::to_string(index));
  }
  const std::lock_guard guard(mutex);
  const Driver* const driver = Driver::find(kind, reason);
  auto& found = cards[{driver, index}];
  if (found == nullptr) found = std::make_shared<Card>(*driver, index);
  return found;
}

}  // namespace

// Where addresses are unified, drivers answer in any context, and without one.
int Device::holder(Kind kind, const void* address) {
  std::string reason;
  const Driver* const driver = kind == Kind::processor ? nullptr : Driver::find(kind, reason);
  int found = -1;
  if (driver == nullptr || driver->pointer_attribute.function(&found, device_ordinal, address) != 0) return -1;
  return found;
}

int Device::count(Kind kind, std::string& reason) {
  if (kind == Kind::processor) return 1;
  const Driver* const driver = Driver::find(kind, reason);
  if (driver == nullptr) return 0;
  int found = 0;
  const int code = driver->count.function(&found);
  if (code == 0 && found > 0) return found;
  reason = code == 0 || code == no_such_card ? "its driver sees no card"
                                             : driver->error_name(code) + " from " + driver->count.name;
  return 0;
}

std::shared_ptr<Device> Device::cuda(int index) { return card(Kind::cuda, index); }
std::shared_ptr<Device> Device::hip(int index) { return card(Kind::hip, index); }

}  // namespace onehop::device
