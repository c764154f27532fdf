// qspi over a mailbox (shared/mailbox.h). Opening a channel is collective, but qspi_prepare involves only two ranks, so
// each message cannot have a channel of its own.
#include "compat/qspi.h"

#include <cstddef>
#include <cstdint>
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
#include "src/base/env.h"

using onehop::BadInput;
using onehop::Group;
using onehop::Mismatch;
using onehop::compat::Collectives;
using onehop::compat::guarded;
using onehop::compat::Layout;
using onehop::compat::Mailbox;
using onehop::compat::Message;

// The messages to one rank that one qspi_prepare has prepared. They are coalesced only if the program promises to start
// them together. Without that promise, a started message must not be held back: the program might wait for its effect
// elsewhere.
struct Bundle {
  int messages = 0;
  int started = 0;  // since the last time that all were
  bool coalesced = false;
};

struct qspi_message {
  enum class Kind { unset, send, receive };
  Kind kind = Kind::unset;
  bool prepared = false;
  bool started = false;            // and not yet waited for
  std::shared_ptr<Bundle> bundle;  // set for a prepared message that is sent
  Layout layout;
  Message message;
  // For qspi_prepare: the length that the receiver tells the sender.
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
  Mailbox mailbox;
  Collectives everybody;
  std::vector<std::uint32_t> sends;  // number of sends prepared so far, by peer
  std::vector<std::uint32_t> receives;

  explicit Qspi(const Group& group)
      : mailbox(group),
        everybody(mailbox, all(group.size()), group.rank(), sum_tag),
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

// Takes a message out of its bundle; the other messages of the bundle are then sent one by one too.
void leave_bundle(qspi_message& msg) {
  if (msg.bundle == nullptr) return;
  msg.bundle->coalesced = false;
  msg.bundle.reset();
  qspi().mailbox.flush();
}

// The ranks may not be connected yet, so qspi_prepare checks the rank against the group.
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
  if (peer >= own.mailbox.size()) {
    throw BadInput("expected ranks from 0 to " + std::to_string(own.mailbox.size() - 1) + ", found " +
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
  sends ? own.mailbox.receive(msg->agreement) : own.mailbox.send(msg->agreement);
}

// Whether the program promises to start all messages of a qspi_prepare before it waits for one of them.
bool promises_to_start_together() { return onehop::env::number("ONEHOP_QSPI_TOGETHER") == 1.0; }

void make_bundles(std::span<const qspi_msg_t> msgs) {
  const bool coalesced = promises_to_start_together();
  std::map<int, std::shared_ptr<Bundle>> bundles;
  for (const qspi_msg_t msg : msgs) {
    if (msg->kind != Kind::send) continue;
    std::shared_ptr<Bundle>& bundle = bundles[msg->message.peer];
    if (bundle == nullptr) bundle = std::make_shared<Bundle>(Bundle{.coalesced = coalesced});
    ++bundle->messages;
    leave_bundle(*msg);
    msg->bundle = bundle;
  }
}

void finish_agreement(qspi_msg_t msg) {
  Qspi& own = qspi();
  own.mailbox.wait(msg->agreement);
  msg->prepared = true;
  if (msg->kind == Kind::send && msg->length != msg->layout.bytes) {
    throw Mismatch("rank " + std::to_string(own.mailbox.rank()) + " sends " + std::to_string(msg->layout.bytes) +
                   " bytes to rank " + std::to_string(msg->message.peer) + ", which expects " +
                   std::to_string(msg->length));
  }
}

qspi_message& prepared(qspi_msg_t msg) {
  if (msg == nullptr || !msg->prepared) throw BadInput("expected a message that qspi_prepare has prepared");
  return *msg;
}

void start(qspi_message& msg) {
  if (msg.started) throw BadInput("the message has been started already; wait for it before starting it again");
  msg.started = true;
  if (msg.kind == Kind::send) {
    Bundle& bundle = *msg.bundle;
    const bool last = ++bundle.started >= bundle.messages;
    qspi().mailbox.send(msg.message, last || !bundle.coalesced ? Mailbox::Slot::close : Mailbox::Slot::hold);
    if (last) bundle.started = 0;
  } else {
    qspi().mailbox.receive(msg.message);
  }
}

void wait(qspi_message& msg) {
  if (!msg.started && msg.kind == Kind::receive) start(msg);
  // The program waits before it has started all messages of the bundle, so it does not start them together.
  if (msg.started && msg.bundle != nullptr && msg.bundle->started > 0) msg.bundle->coalesced = false;
  qspi().mailbox.wait(msg.message);
  msg.started = false;
}

}  // namespace

ONEHOP_COMPAT_API void qspi_init() {}

ONEHOP_COMPAT_API void qspi_finalize() {
  guarded("qspi_finalize", [] {
    if (instance() != nullptr) instance()->mailbox.flush();
    instance().reset();
    // Programs finalise MPI after this, and the group may use MPI.
    Group::close_world();
  });
}

ONEHOP_COMPAT_API qspi_msg_t qspi_create_msg() {
  return guarded("qspi_create_msg", [] { return new qspi_message; });
}

ONEHOP_COMPAT_API void qspi_free_msg(qspi_msg_t msg) {
  guarded("qspi_free_msg", [&] {
    if (msg != nullptr && msg->message.active()) {
      throw BadInput("a message cannot be freed while it is under way; wait for it first");
    }
    if (msg != nullptr) leave_bundle(*msg);
    delete msg;
  });
}

ONEHOP_COMPAT_API void qspi_set_send(int dest, void* buf, size_t size, qspi_msg_t send_msg) {
  guarded("qspi_set_send", [&] { set(send_msg, Kind::send, dest, {&buf, 1}, {&size, 1}); });
}

ONEHOP_COMPAT_API void qspi_set_send_multi(int dest, void* buf[], size_t size[], int n_msg, qspi_msg_t send_msg) {
  guarded("qspi_set_send_multi", [&] {
    if (n_msg < 0) throw BadInput("expected a number of pieces, found " + std::to_string(n_msg));
    const auto pieces = static_cast<std::size_t>(n_msg);
    set(send_msg, Kind::send, dest, {buf, pieces}, {size, pieces});
  });
}

ONEHOP_COMPAT_API void qspi_set_recv(int src, void* buf, size_t size, qspi_msg_t recv_msg) {
  guarded("qspi_set_recv", [&] { set(recv_msg, Kind::receive, src, {&buf, 1}, {&size, 1}); });
}

ONEHOP_COMPAT_API void qspi_prepare(qspi_msg_t msgs[], int num) {
  guarded("qspi_prepare", [&] {
    const std::span all(msgs, static_cast<std::size_t>(num));
    for (qspi_msg_t msg : all) begin_agreement(msg);
    for (qspi_msg_t msg : all) finish_agreement(msg);
    make_bundles(all);
  });
}

ONEHOP_COMPAT_API void qspi_start(qspi_msg_t msg) {
  guarded("qspi_start", [&] { start(prepared(msg)); });
}

ONEHOP_COMPAT_API void qspi_wait(qspi_msg_t msg) {
  guarded("qspi_wait", [&] { wait(prepared(msg)); });
}

ONEHOP_COMPAT_API void qspi_sum_double(double* x) {
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
