#include "src/device/driver.h"

#include <dlfcn.h>

#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "src/base/env.h"

namespace onehop::device {
namespace {

struct Sought {
  const char* variable;
  const char* called;
  std::array<const char*, 3> files;
  int oldest;  // as the driver numbers its versions
  const char* oldest_text;
};

constexpr Sought cuda{"ONEHOP_CUDA", "CUDA driver", {"libcuda.so.1", nullptr, nullptr}, 11080, "CUDA 11.8"};
// ROCm 6.0 loads no kernel whose description has hidden_dynamic_lds_size, as those with shared memory have.
constexpr Sought hip{
    "ONEHOP_HIP", "HIP runtime", {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6"}, 60100000, "ROCm 6.1"};

const Sought& sought(Kind kind) { return kind == Kind::cuda ? cuda : hip; }

void* open(const Sought& library, std::string& reason) {
  const auto chosen = env::text(library.variable);
  for (const char* const file : library.files) {
    if (file == nullptr) break;
    if (void* const handle = dlopen(chosen ? chosen->c_str() : file, RTLD_NOW | RTLD_LOCAL)) return handle;
    if (const char* const why = dlerror(); reason.empty() && why != nullptr) reason = why;
  }
  reason = "no " + std::string(library.called) + " was found (" + reason +
           "): install the driver of the card, or set " + library.variable + " to the path of its library";
  return nullptr;
}

}  // namespace

std::string Driver::error_name(int code) const {
  const char* name = nullptr;
  if (kind == Kind::cuda) {
    if (cuda_error_name_(code, &name) != 0) name = nullptr;
  } else {
    name = hip_error_name_(code);
  }
  return name == nullptr ? "error " + std::to_string(code) : name;
}

// Returns the name of a function that is missing, or an empty text.
std::string Driver::bind(void* library) {
  std::string missing;
  const bool is_cuda = kind == Kind::cuda;
  const auto find = [&](auto*& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && missing.empty()) missing = name;
  };
  const auto bind = [&](auto& call, const char* cuda_name, const char* hip_name) {
    call.name = is_cuda ? cuda_name : hip_name;
    if (call.name != nullptr) find(call.function, call.name);
  };
#define ONEHOP_CALL(name, cuda, hip, ...) bind(name, cuda, hip);
#include "src/device/driver_calls.inc"
#undef ONEHOP_CALL
  if (is_cuda) {
    find(cuda_error_name_, "cuGetErrorName");
  } else {
    find(hip_error_name_, "hipGetErrorName");
  }
  return missing;
}

std::unique_ptr<Driver> Driver::load(Kind kind, std::string& reason) {
  const Sought& library = sought(kind);
  void* const handle = open(library, reason);
  if (handle == nullptr) return nullptr;
  auto driver = std::make_unique<Driver>();
  driver->kind = kind;
  if (const std::string missing = driver->bind(handle); !missing.empty()) {
    reason = "the " + std::string(library.called) + " has no function " + missing + ": install a newer one, " +
             library.oldest_text + " at least";
    return nullptr;
  }
  const auto failed = [&](const auto& call, int code) {
    if (code != 0) reason = std::string(call.name) + " of the " + library.called + ": " + driver->error_name(code);
    return code != 0;
  };
  if (failed(driver->init, driver->init.function(0))) return nullptr;
  int version = 0;
  if (failed(driver->version, driver->version.function(&version))) return nullptr;
  if (version >= library.oldest) return driver;
  reason = "expected a " + std::string(library.called) + " of " + library.oldest_text + " or newer, found version " +
           std::to_string(version) + ": update the driver of the card";
  return nullptr;
}

const Driver* Driver::find(Kind kind, std::string& reason) {
  static std::mutex mutex;
  static std::map<std::pair<Kind, std::string>, std::unique_ptr<Driver>> found;  // a driver is never unloaded
  const std::string chosen = env::text(sought(kind).variable).value_or("");
  if (chosen == "none") {
    reason = std::string(sought(kind).variable) + "=none switches the " + sought(kind).called + " off";
    return nullptr;
  }
  const std::lock_guard guard(mutex);
  auto& driver = found[{kind, chosen}];
  if (driver == nullptr) driver = load(kind, reason);
  return driver.get();
}

}  // namespace onehop::device
