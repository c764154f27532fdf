// The functions of a card's driver that onehop calls: the driver interface of CUDA, or the HIP runtime, whose functions
// have the same parameters but for a few. Loaded at run time; nothing of either is needed to build onehop.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "src/device/device.h"

namespace onehop::device {

// The codes that both drivers share.
inline constexpr int no_such_card = 100;  // there is no card at all
inline constexpr int not_ready = 600;

template <class... Parameters>
struct Call {
  int (*function)(Parameters...) = nullptr;
  const char* name = "";
};

struct Driver {
  Kind kind = Kind::cuda;

#define ONEHOP_CALL(name, cuda, hip, ...) Call<__VA_ARGS__> name;
#include "src/device/driver_calls.inc"
#undef ONEHOP_CALL

  [[nodiscard]] std::string error_name(int code) const;

  // Loads and initialises the driver, once. Null and a reason if it cannot be used: it is switched off or not found,
  // lacks a function, is too old, or has no card.
  [[nodiscard]] static const Driver* find(Kind kind, std::string& reason);

 private:
  int (*cuda_error_name_)(int, const char**) = nullptr;
  const char* (*hip_error_name_)(int) = nullptr;

  [[nodiscard]] std::string bind(void* library);
  [[nodiscard]] static std::unique_ptr<Driver> load(Kind kind, std::string& reason);
};

}  // namespace onehop::device
