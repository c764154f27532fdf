// A ring: every rank sends a number to the next one. Try: onehop launch -n 4 ./channel
#include <array>
#include <cstdio>
#include <cstring>

#include "onehop/channel.h"

int main() {
  const onehop::Group group = onehop::Group::world();
  const int next = (group.rank() + 1) % group.size(), previous = (group.rank() + group.size() - 1) % group.size();
  using Direction = onehop::ChannelSpec::Direction;
  const std::array specs{onehop::ChannelSpec{.direction = Direction::send, .peer = next, .bytes = sizeof(int)},
                         onehop::ChannelSpec{.direction = Direction::receive, .peer = previous, .bytes = sizeof(int)}};
  onehop::Channels ring = onehop::open_channels(group, specs);

  const int mine = 10 * group.rank();
  std::memcpy(ring.senders[0].slot().data(), &mine, sizeof mine);  // directly into the neighbour's memory
  ring.senders[0].put();
  int got = 0;
  std::memcpy(&got, ring.receivers[0].wait().data(), sizeof got);
  ring.receivers[0].release();
  std::printf("rank %d got %d from rank %d\n", group.rank(), got, previous);
  return got == 10 * previous ? 0 : 1;
}
