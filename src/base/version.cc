#include "onehop/version.h"

namespace onehop {

const char* version() noexcept { return ONEHOP_VERSION; }

}  // namespace onehop
