#include "src/device/images.h"

namespace onehop::device {

std::span<const Image> images() { return {}; }

}  // namespace onehop::device
