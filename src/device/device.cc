#include "src/device/device.h"

#include <unistd.h>

#include <charconv>
#include <random>

#include "onehop/error.h"
#include "src/device/kernels.h"

namespace onehop::device {

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, 3> names{"processor", "cuda", "hip"};
  return names[static_cast<std::size_t>(kind)];
}

std::string Device::text() const {
  std::string found(name_of(kind_));
  if (kind_ != Kind::processor) found += ":" + std::to_string(index_) + " (" + model_ + ")";
  return found;
}

std::shared_ptr<Device> Device::named(const std::string& name) {
  if (name == "processor") return processor();
  const std::size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  int index = 0;
  bool good = kind == "cuda" || kind == "hip";
  if (good && colon != std::string::npos) {
    const char* const end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + colon + 1, end, index);
    good = error == std::errc() && rest == end && index >= 0;
  }
  if (!good) {
    throw BadInput("expected a device as \"cuda\", \"cuda:1\", \"hip\", \"hip:1\" or \"processor\", found '" + name +
                   "'");
  }
  return kind == "cuda" ? cuda(index) : hip(index);
}

namespace {

std::uint64_t this_process() {
  static const std::uint64_t number = (std::uint64_t{std::random_device{}()} << 32U) + std::random_device{}();
  return number + static_cast<std::uint64_t>(getpid());
}

}  // namespace

SharedPlace Device::share(const Memory& memory) {
  return {this_process(), reinterpret_cast<std::uint64_t>(memory.data()), memory.bytes(), index_, handle_of(memory)};
}

// Drivers do not map memory of the own process.
Memory Device::reach(const SharedPlace& place) {
  if (place.process != this_process()) return map(place.handle, place.bytes);
  if (place.index != index_) throw Error("ranks of one process use different cards");
  return {std::shared_ptr<std::byte>(reinterpret_cast<std::byte*>(place.address), [](std::byte*) {}), place.bytes};
}

void check_arguments(std::string_view kernel, std::size_t bytes) {
  const std::size_t expected = find_kernel(kernel).argument_bytes;
  if (bytes == expected) return;
  throw BadInput("expected " + std::to_string(expected) + " bytes of arguments for the kernel " + std::string(kernel) +
                 ", found " + std::to_string(bytes));
}

}  // namespace onehop::device
