// Small launches of every kernel, whose results must have the same bits on every device.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "src/device/device.h"

namespace onehop::device {

// What a device holds and runs: first what kernels write, then what they only read.
struct Trial {
  std::byte* memory = nullptr;   // of the device
  std::vector<std::byte> bytes;  // what is there at first
  std::size_t compared = 0;      // so many of them are results
  struct Step {
    std::string name;  // of the kernel, and what it does
    std::string kernel;
    Shape shape;
    std::vector<std::byte> arguments;
  };
  std::vector<Step> steps;

  // Returns where the numbers will be on the device.
  template <class T>
  T* put(const std::vector<T>& numbers) {
    const std::size_t begin = (bytes.size() + 15) / 16 * 16;
    const auto added = std::as_bytes(std::span(numbers));
    bytes.resize(begin);
    bytes.insert(bytes.end(), added.begin(), added.end());
    return reinterpret_cast<T*>(memory + begin);
  }
  void end_of_results() { compared = bytes.size(); }
  template <class Arguments>
  void launch(const std::string& kernel, const Shape& shape, const Arguments& arguments, const std::string& what = {}) {
    const auto copied = std::as_bytes(std::span(&arguments, 1));
    const std::string name = "onehop_" + kernel;
    steps.push_back({name + what, name, shape, {copied.begin(), copied.end()}});
  }
};

// All kernels but those of codecs, which take less than 256 KiB.
[[nodiscard]] std::vector<std::function<void(Trial&)>> kernel_trials();

}  // namespace onehop::device
