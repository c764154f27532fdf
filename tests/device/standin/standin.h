// Makes onehop use the stand-ins for the drivers of cards (driver.cc), with an image that holds all kernels.
#pragma once

#include <string>

#include "src/device/device.h"

namespace onehop::testing {

// Sets a variable of the environment for a scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value);
  ~Variable();
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// The driver of a kind and the image for a scope. Every object loads its driver anew.
class StandIn {
 public:
  // `arch`: of the image, 0 for that of the cards; `form`: "ptx" (CUDA only) or "elf".
  explicit StandIn(device::Kind kind, const std::string& form = "elf", int arch = 0, bool has_q8 = true);
  ~StandIn();
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;
  // How often a function of the driver was called.
  [[nodiscard]] int calls(const char* function) const;
  // The most memory of cards that this process has had at a time since the last call.
  [[nodiscard]] std::size_t most_bytes() const;
  // How often memory of cards was freed by this process while others mapped it.
  [[nodiscard]] int freed_while_mapped() const;
  // A function of the driver.
  [[nodiscard]] void* symbol(const char* name) const;

 private:
  std::string library_;
  std::string image_;
  Variable driver_;
  Variable image_file_;
};

}  // namespace onehop::testing
