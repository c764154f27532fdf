// The device of a rank, and arrays on it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/device/device.h"
#include "tests/device/standin/standin.h"

namespace onehop::testing {

// The device of a rank; the object keeps the stand-in.
struct OnDevice {
  explicit OnDevice(device::Kind kind, int index = 0) {
    if (kind != device::Kind::processor) standin.emplace(kind);
    device = kind == device::Kind::processor
                 ? device::Device::processor()
                 : device::Device::named(std::string(name_of(kind)) + ":" + std::to_string(index));
    stream = device->make_stream();
  }
  template <class T>
  device::Memory put(const std::vector<T>& numbers) const {
    device::Memory memory = device->allocate(static_cast<std::int64_t>(numbers.size() * sizeof(T)));
    device->copy_in(stream, memory.data(), numbers.data(), memory.bytes());
    device->synchronize(stream);
    return memory;
  }
  template <class T = float>
  [[nodiscard]] std::vector<T> get(const device::Memory& memory) const {
    std::vector<T> numbers(static_cast<std::size_t>(memory.bytes()) / sizeof(T));
    device->copy_out(stream, numbers.data(), memory.data(), memory.bytes());
    device->synchronize(stream);
    return numbers;
  }
  std::optional<StandIn> standin;
  std::shared_ptr<device::Device> device;
  device::Stream stream;
};

}  // namespace onehop::testing
