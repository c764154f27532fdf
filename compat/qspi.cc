// qspi on a post (shared/post.h): preparing is something between two ranks there, so there is nobody to open a channel with.
#include "compat/qspi.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compat/shared/boundary.h"
#include "compat/shared/collectives.h"
#include "onehop/error.h"
#include "onehop/group.h"

using onehop::BadInput;
using onehop::Group;
using onehop::Mismatch;
using onehop::door::Circle;
using onehop::door::guarded;
using onehop::door::Layout;
using onehop::door::Message;
using onehop::door::Post;

// The messages that one qspi_prepare has made ready towards one rank. They go together where the program says that it starts them
// together: a started message that is held back for others would never leave where the program waits for its effect elsewhere.
struct Bundle {
  int messages = 0;
  int started = 0;  // since all had been
  bool together = false;
};

struct qspi_message {
  enum class Kind { unset, send, receive };
  Kind kind = Kind::unset;
  bool prepared = false;
  bool started = false;            // and not waited for since
  std::shared_ptr<Bundle> bundle;  // of a prepared message that is sent
  Layout layout;
  Message message;
  // For preparing: what the receiver tells the sender.
  std::uint64_t length = 0;
  Layout length_layout{sizeof(std::uint64_t)};
  Message agreement;
};

namespace {

using Kind = qspi_message::Kind;

constexpr std::uint32_t sum_tag = 0;
constexpr std::uint32_t agreement_tag = 1;
constexpr std::uint32_t first_message_tag = 2;

struct Qspi {
  Post post;
  Circle everybody;
  std::vector<std::uint32_t> sends;  // prepared so far, by the rank at the other end
  std::vector<std::uint32_t> receives;

  explicit Qspi(const Group& group)
      : post(group),
        everybody(post, all(group.size()), group.rank(), sum_tag),
        sends(static_cast<std::size_t>(group.size())),
        receives(static_cast<std::size_t>(group.size())) {}

  static std::vector<int> all(int ranks) {
    std::vector<int> numbers(static_cast<std::size_t>(ranks));
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }
};

std::unique_ptr<Qspi>& instance() {
  static std::unique_ptr<Qspi> qspi;
  return qspi;
}

Qspi& qspi() {
  if (instance() == nullptr) instance() = std::make_unique<Qspi>(Group::world());
  return *instance();
}

// The message goes its own way: so do those that it was started with.
void leave_bundle(qspi_message& msg) {
  if (msg.bundle == nullptr) return;
  msg.bundle->together = false;
  msg.bundle.reset();
  qspi().post.flush();
}

// Where this is called the ranks need not have met: a message is checked against the group when it is prepared.
void set(qspi_msg_t msg, Kind kind, int rank, std::span<void* const> buffers, std::span<const std::size_t> sizes) {
  if (msg == nullptr) throw BadInput("expected a message that qspi_create_msg made, found a null pointer");
  if (msg->message.active()) throw BadInput("a message cannot be set while it is under way; wait for it first");
  if (rank < 0) throw BadInput("expected the number of a rank, found " + std::to_string(rank));
  leave_bundle(*msg);
  msg->kind = kind;
  msg->prepared = false;
  msg->message.peer = rank;
  msg->layout = {};
  msg->message.layout = &msg->layout;
  msg->message.base = buffers.empty() ? nullptr : static_cast<std::byte*>(buffers.front());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i] == nullptr && sizes[i] > 0) {
      throw BadInput("expected a buffer of " + std::to_string(sizes[i]) + " bytes, found a null pointer");
    }
    msg->layout.add(static_cast<std::byte*>(buffers[i]) - msg->message.base, sizes[i]);
  }
}

void begin_agreement(qspi_msg_t msg) {
  Qspi& own = qspi();
  if (msg == nullptr || msg->kind == Kind::unset) {
    throw BadInput("expected a message that qspi_set_send or qspi_set_recv has set");
  }
  const int peer = msg->message.peer;
  if (peer >= own.post.size()) {
    throw BadInput("expected ranks from 0 to " + std::to_string(own.post.size() - 1) + ", found " +
                   std::to_string(peer));
  }
  const bool sends = msg->kind == Kind::send;
  std::uint32_t& number = (sends ? own.sends : own.receives)[static_cast<std::size_t>(peer)];
  msg->message.tag = first_message_tag + number++;
  msg->length = msg->layout.bytes;
  msg->agreement.peer = peer;
  msg->agreement.tag = agreement_tag;
  msg->agreement.layout = &msg->length_layout;
  msg->agreement.base = reinterpret_cast<std::byte*>(&msg->length);
  sends ? own.post.receive(msg->agreement) : own.post.send(msg->agreement);
}

bool start_together() {
  const char* const said = std::getenv("ONEHOP_QSPI_TOGETHER");
  return said != nullptr && std::strcmp(said, "1") == 0;
}

void make_bundles(std::span<const qspi_msg_t> msgs) {
  const bool together = start_together();
  std::map<int, std::shared_ptr<Bundle>> bundles;
  for (const qspi_msg_t msg : msgs) {
    if (msg->kind != Kind::send) continue;
    std::shared_ptr<Bundle>& bundle = bundles[msg->message.peer];
    if (bundle == nullptr) bundle = std::make_shared<Bundle>(Bundle{.together = together});
    ++bundle->messages;
    leave_bundle(*msg);
    msg->bundle = bundle;
  }
}

void finish_agreement(qspi_msg_t msg) {
  Qspi& own = qspi();
  own.post.wait(msg->agreement);
  msg->prepared = true;
  if (msg->kind == Kind::send && msg->length != msg->layout.bytes) {
    throw Mismatch("rank " + std::to_string(own.post.rank()) + " sends " + std::to_string(msg->layout.bytes) +
                   " bytes to rank " + std::to_string(msg->message.peer) + ", which expects " +
                   std::to_string(msg->length));
  }
}

qspi_message& prepared(qspi_msg_t msg) {
  if (msg == nullptr || !msg->prepared) throw BadInput("expected a message that qspi_prepare has prepared");
  return *msg;
}

void start(qspi_message& msg) {
  if (msg.started) throw BadInput("a message was started that has been started already; wait for it first");
  msg.started = true;
  if (msg.kind == Kind::send) {
    Bundle& bundle = *msg.bundle;
    const bool last = ++bundle.started >= bundle.messages;
    qspi().post.send(msg.message, last || !bundle.together ? Post::Slot::close : Post::Slot::hold);
    if (last) bundle.started = 0;
  } else {
    qspi().post.receive(msg.message);
  }
}

void wait(qspi_message& msg) {
  if (!msg.started && msg.kind == Kind::receive) start(msg);
  // Waited for before all were started: this program does not start them together.
  if (msg.started && msg.bundle != nullptr && msg.bundle->started > 0) msg.bundle->together = false;
  qspi().post.wait(msg.message);
  msg.started = false;
}

}  // namespace

ONEHOP_DOOR void qspi_init() {}

ONEHOP_DOOR void qspi_finalize() {
  guarded("qspi_finalize", [] {
    if (instance() != nullptr) instance()->post.flush();
    instance().reset();
    // Programs finalise MPI after this, and the group may stand on it.
    Group::close_world();
  });
}

ONEHOP_DOOR qspi_msg_t qspi_create_msg() {
  return guarded("qspi_create_msg", [] { return new qspi_message; });
}

ONEHOP_DOOR void qspi_free_msg(qspi_msg_t msg) {
  guarded("qspi_free_msg", [&] {
    if (msg != nullptr && msg->message.active()) {
      throw BadInput("a message cannot be freed while it is under way; wait for it first");
    }
    if (msg != nullptr) leave_bundle(*msg);
    delete msg;
  });
}

ONEHOP_DOOR void qspi_set_send(int dest, void* buf, size_t size, qspi_msg_t send_msg) {
  guarded("qspi_set_send", [&] { set(send_msg, Kind::send, dest, {&buf, 1}, {&size, 1}); });
}

ONEHOP_DOOR void qspi_set_send_multi(int dest, void* buf[], size_t size[], int n_msg, qspi_msg_t send_msg) {
  guarded("qspi_set_send_multi", [&] {
    if (n_msg < 0) throw BadInput("expected a number of pieces, found " + std::to_string(n_msg));
    const auto pieces = static_cast<std::size_t>(n_msg);
    set(send_msg, Kind::send, dest, {buf, pieces}, {size, pieces});
  });
}

ONEHOP_DOOR void qspi_set_recv(int src, void* buf, size_t size, qspi_msg_t recv_msg) {
  guarded("qspi_set_recv", [&] { set(recv_msg, Kind::receive, src, {&buf, 1}, {&size, 1}); });
}

ONEHOP_DOOR void qspi_prepare(qspi_msg_t msgs[], int num) {
  guarded("qspi_prepare", [&] {
    const std::span all(msgs, static_cast<std::size_t>(num));
    for (qspi_msg_t msg : all) begin_agreement(msg);
    for (qspi_msg_t msg : all) finish_agreement(msg);
    make_bundles(all);
  });
}

ONEHOP_DOOR void qspi_start(qspi_msg_t msg) {
  guarded("qspi_start", [&] { start(prepared(msg)); });
}

ONEHOP_DOOR void qspi_wait(qspi_msg_t msg) {
  guarded("qspi_wait", [&] { wait(prepared(msg)); });
}

ONEHOP_DOOR void qspi_sum_double(double* x) {
  guarded("qspi_sum_double", [&] {
    const std::span<const std::byte> values = qspi().everybody.gather(std::as_bytes(std::span(x, 1)));
    double sum = 0;
    for (std::size_t at = 0; at < values.size(); at += sizeof(double)) {
      double value = 0;
      std::memcpy(&value, values.data() + at, sizeof value);
      sum = at == 0 ? value : sum + value;
    }
    *x = sum;
  });
}
