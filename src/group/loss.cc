#include "src/group/loss.h"

#include "src/group/group_state.h"

namespace onehop {

void report_loss(const Group& group, int lost) noexcept {
  if (lost >= 0 && lost < group.size()) group.state()->tell_lost(lost);
}

}  // namespace onehop
