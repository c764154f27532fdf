#include "measure/pingpong.h"

#include <string_view>

#include "measure/buffer.h"
#include "onehop/tuning.h"

namespace onehop::measure {
namespace {

class OnehopEnd {
 public:
  OnehopEnd(const Group& group, std::int64_t bytes, bool get) : source_(bytes), result_(get ? bytes : 0), get_(get) {
    // Nobody packs in place here, so long messages pass in fragments, as those of plans do.
    Channels channels = open_both_ways(group, bytes, bytes > tuning().slot_bytes ? tuning().slot_bytes : 0);
    sender_ = std::move(channels.senders[0]);
    receiver_ = std::move(channels.receivers[0]);
    whole_ = receiver_.in_place() && receiver_.bytes() <= receiver_.ring().chunk_bytes;
  }

  [[nodiscard]] std::string_view name() const { return get_ ? "onehop, get" : "onehop"; }
  [[nodiscard]] std::span<std::byte> source() noexcept { return source_.bytes(); }
  void send() { sender_.put(source_.bytes()); }
  template <class Read>
  void receive(Read&& read) {
    if (get_) {
      receiver_.get(result_.bytes());
      read(std::span<const std::byte>(result_.bytes()));
    } else if (whole_) {
      read(receiver_.wait());
      receiver_.release();
    } else {
      receive_in_parts(read);
    }
  }

 private:
  // Out of line, or else clang inlines neither this nor the loop around short messages.
  template <class Read>
  [[gnu::noinline]] void receive_in_parts(Read& read) {
    receiver_.read([&](std::span<const std::byte> part, std::int64_t) { read(part); });
  }

  Buffer source_;
  Buffer result_;
  Sender sender_;
  Receiver receiver_;
  bool get_;
  bool whole_ = true;
};

}  // namespace

Channels open_both_ways(const Group& group, std::int64_t bytes, std::int64_t slot_bytes) {
  ChannelSpec specs[2];
  for (ChannelSpec& spec : specs) spec = {.peer = 1 - group.rank(), .bytes = bytes, .slot_bytes = slot_bytes};
  specs[1].direction = ChannelSpec::Direction::receive;
  return open_channels(group, specs, TransportKind::automatic);
}

Candidate onehop_ping_pong(const Group& group, std::int64_t bytes, bool get, Role role) {
  auto end = std::make_shared<OnehopEnd>(group, bytes, get);
  std::string name(end->name());
  return {std::move(name), role, block_of(std::move(end), group.rank() == 0, bytes), one_way};
}

}  // namespace onehop::measure
