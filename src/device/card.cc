// Cards behind the driver interfaces of CUDA and HIP.
#include "onehop/error.h"
#include "src/device/device.h"

namespace onehop::device {

int Device::count(Kind kind, std::string& reason) {
  reason = "this version of onehop does not load the driver of " + std::string(name_of(kind)) + " yet";
  return kind == Kind::processor ? 1 : 0;
}

std::shared_ptr<Device> Device::cuda(int /*index*/) {
  std::string reason;
  static_cast<void>(count(Kind::cuda, reason));
  throw Error(reason);
}

std::shared_ptr<Device> Device::hip(int /*index*/) {
  std::string reason;
  static_cast<void>(count(Kind::hip, reason));
  throw Error(reason);
}

}  // namespace onehop::device
