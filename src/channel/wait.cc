#include "onehop/wait.h"

#include "src/channel/waiting.h"
#include "src/group/group_state.h"

namespace onehop {

void wait_until(const Group& group, const WaitReason& reason, const std::function<bool()>& ready) {
  group.state()->check_process();
  detail::Waiting waiting(*group.state(), reason.polls);
  while (!ready()) {
    waiting.idle(ready, [&] { return detail::WaitingFor{reason.peer, reason.what}; });
  }
}

void set_sleep_early(bool early) noexcept { detail::sleep_early = early; }

}  // namespace onehop
