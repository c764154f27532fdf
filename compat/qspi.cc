// qspi over a mailbox (shared/mailbox.h). Opening a channel is collective, but qspi_prepare involves only two ranks, so
// each message cannot have a channel of its own.
#include "compat/qspi.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compat/shared/boundary.h"
#include "compat/shared/collectives.h"
#include "compat/shared/handles.h"
#include "compat/shared/memory.h"
#include "onehop/error.h"
#include "onehop/group.h"
#include "src/base/env.h"

using onehop::BadInput;
using onehop::Group;
using onehop::Mismatch;
using onehop::compat::check_memory;
using onehop::compat::checked_span;
using onehop::compat::checked_value;
using onehop::compat::Collectives;
using onehop::compat::guarded;
using onehop::compat::Handles;
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
  std::uint32_t prepared = 0;      // the meeting of the ranks in which it was prepared
  bool started = false;            // and not yet waited for
  bool starts_itself = true;       // for a message that is received: whether qspi_wait starts it
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
        everybody(mailbox, sum_tag),
        sends(static_cast<std::size_t>(group.size())),
        receives(static_cast<std::size_t>(group.size())) {}
};

struct State {
  std::unique_ptr<Qspi> qspi;
  std::uint32_t meeting = 1;  // one more for every qspi_finalize
  bool finalized = false;
};

State& state() {
  static State the_state;
  return the_state;
}

constinit Handles<qspi_msg_t, qspi_message, 0x51> messages("a message", "qspi_create_msg");

Qspi& qspi() {
  if (state().finalized) throw BadInput("expected to be called before qspi_finalize; call qspi_init to begin again");
  if (state().qspi == nullptr) state().qspi = std::make_unique<Qspi>(Group::world());
  return *state().qspi;
}

// A message that was under way when the ranks parted is not any more.
bool under_way(const qspi_message& msg) { return msg.prepared == state().meeting && msg.message.active(); }

// Takes a message out of its bundle; the other messages of the bundle are then sent one by one too.
void leave_bundle(qspi_message& msg) {
  if (msg.bundle == nullptr) return;
  msg.bundle->coalesced = false;
  msg.bundle.reset();
  if (state().qspi != nullptr) state().qspi->mailbox.flush();
}

Message message_of(int peer, std::uint32_t tag, const Layout& layout, std::byte* base) {
  Message message;
  message.peer = peer;
  message.tag = tag;
  message.layout = &layout;
  message.base = base;
  return message;
}

// The ranks may not be connected yet, so qspi_prepare checks the rank against the group.
void set(qspi_msg_t handle, Kind kind, int rank, std::span<void* const> buffers, std::span<const std::size_t> sizes) {
  qspi_message& msg = messages.at(handle);
  if (under_way(msg)) throw BadInput("a message cannot be set while it is under way; wait for it first");
  if (rank < 0) throw BadInput("expected the number of a rank, found " + std::to_string(rank));
  Layout layout;
  std::byte* base = nullptr;  // the first piece that has bytes
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    check_memory(buffers[i], sizes[i]);
    if (sizes[i] == 0) continue;
    if (base == nullptr) base = static_cast<std::byte*>(buffers[i]);
    layout.add(static_cast<std::byte*>(buffers[i]) - base, sizes[i]);
  }
  leave_bundle(msg);
  msg = {};
  msg.kind = kind;
  msg.layout = std::move(layout);
  msg.message = message_of(rank, 0, msg.layout, base);
}

void check_settings(const qspi_message& msg) {
  if (msg.kind == Kind::unset) throw BadInput("expected a message that qspi_set_send or qspi_set_recv has set");
  if (under_way(msg)) throw BadInput("a message cannot be prepared while it is under way; wait for it first");
  const Qspi& own = qspi();
  const int peer = msg.message.peer;
  if (peer >= own.mailbox.size()) {
    throw BadInput("expected ranks from 0 to " + std::to_string(own.mailbox.size() - 1) + ", found " +
                   std::to_string(peer));
  }
}

void begin_agreement(qspi_message& msg) {
  Qspi& own = qspi();
  const bool sends = msg.kind == Kind::send;
  const int peer = msg.message.peer;
  std::uint32_t& number = (sends ? own.sends : own.receives)[static_cast<std::size_t>(peer)];
  msg.message = message_of(peer, first_message_tag + number++, msg.layout, msg.message.base);
  msg.started = false;
  msg.length = msg.layout.bytes;
  msg.agreement = message_of(peer, agreement_tag, msg.length_layout, reinterpret_cast<std::byte*>(&msg.length));
  sends ? own.mailbox.receive(msg.agreement) : own.mailbox.send(msg.agreement);
}

// Whether the program promises to start all messages of a qspi_prepare before it waits for one of them.
bool promises_to_start_together() { return onehop::env::number("ONEHOP_QSPI_TOGETHER") == 1.0; }

void make_bundles(std::span<qspi_message* const> msgs) {
  const bool coalesced = promises_to_start_together();
  std::map<int, std::shared_ptr<Bundle>> bundles;
  for (qspi_message* const msg : msgs) {
    if (msg->kind != Kind::send) continue;
    std::shared_ptr<Bundle>& bundle = bundles[msg->message.peer];
    if (bundle == nullptr) bundle = std::make_shared<Bundle>(Bundle{.coalesced = coalesced});
    ++bundle->messages;
    leave_bundle(*msg);
    msg->bundle = bundle;
  }
}

void finish_agreement(qspi_message& msg) {
  Qspi& own = qspi();
  own.mailbox.wait(msg.agreement);
  msg.prepared = state().meeting;
  if (msg.kind == Kind::send && msg.length != msg.layout.bytes) {
    throw Mismatch("rank " + std::to_string(own.mailbox.rank()) + " sends " + std::to_string(msg.layout.bytes) +
                   " bytes to rank " + std::to_string(msg.message.peer) + ", which expects " +
                   std::to_string(msg.length));
  }
}

void prepare(std::span<const qspi_msg_t> handles) {
  std::vector<qspi_message*> all;
  for (const qspi_msg_t handle : handles) all.push_back(&messages.at(handle));
  for (const qspi_message* msg : all) check_settings(*msg);
  std::vector<qspi_message*> sorted = all;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) {
    throw BadInput("expected every message once, found one of them twice");
  }
  for (qspi_message* msg : all) begin_agreement(*msg);
  for (qspi_message* msg : all) finish_agreement(*msg);
  make_bundles(all);
}

qspi_message& prepared(qspi_msg_t handle) {
  qspi_message& msg = messages.at(handle);
  if (msg.prepared != state().meeting) {
    throw BadInput(std::string("expected a message that qspi_prepare has prepared") +
                   (msg.prepared == 0 ? "" : ", found one that was prepared before qspi_finalize"));
  }
  return msg;
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
  if (!msg.started && msg.kind == Kind::receive) {
    if (!msg.starts_itself) {
      throw BadInput("the message has been waited for already; start it before waiting for the next one");
    }
    start(msg);
  }
  // The program waits before it has started all messages of the bundle, so it does not start them together.
  if (msg.started && msg.bundle != nullptr && msg.bundle->started > 0) msg.bundle->coalesced = false;
  qspi().mailbox.wait(msg.message);
  msg.started = false;
}

}  // namespace

ONEHOP_COMPAT_API void qspi_init() { state().finalized = false; }

ONEHOP_COMPAT_API void qspi_finalize() {
  guarded("qspi_finalize", [] {
    State& own = state();
    if (own.finalized) throw BadInput("expected to be called once, found qspi finalised already");
    if (own.qspi != nullptr) own.qspi->mailbox.flush();
    own.qspi.reset();
    own.finalized = true;
    ++own.meeting;
    // Programs finalise MPI after this, and the group may use MPI.
    Group::close_world();
  });
}

ONEHOP_COMPAT_FUNCTION(qspi_msg_t, qspi_create_msg, (), messages.add())

ONEHOP_COMPAT_API void qspi_free_msg(qspi_msg_t msg) {
  guarded("qspi_free_msg", [&] {
    if (msg == nullptr) return;
    qspi_message& freed = messages.at(msg);
    if (under_way(freed)) throw BadInput("a message cannot be freed while it is under way; wait for it first");
    leave_bundle(freed);
    messages.remove(msg);
  });
}

ONEHOP_COMPAT_API void qspi_set_send(int dest, void* buf, size_t size, qspi_msg_t send_msg) {
  guarded("qspi_set_send", [&] { set(send_msg, Kind::send, dest, {&buf, 1}, {&size, 1}); });
}

ONEHOP_COMPAT_FUNCTION(void, qspi_set_send_multi,
                       (int dest, void* buf[], size_t size[], int n_msg, qspi_msg_t send_msg),
                       set(send_msg, Kind::send, dest, checked_span(buf, n_msg), checked_span(size, n_msg)))

ONEHOP_COMPAT_API void qspi_set_recv(int src, void* buf, size_t size, qspi_msg_t recv_msg) {
  guarded("qspi_set_recv", [&] { set(recv_msg, Kind::receive, src, {&buf, 1}, {&size, 1}); });
}

ONEHOP_COMPAT_API void qspi_prepare(qspi_msg_t msgs[], int num) {
  guarded("qspi_prepare", [&] {
    static_cast<void>(qspi());
    prepare(checked_span(msgs, num));
  });
}

ONEHOP_COMPAT_API void qspi_start(qspi_msg_t msg) {
  guarded("qspi_start", [&] {
    qspi_message& started = prepared(msg);
    start(started);
    started.starts_itself = false;
  });
}

ONEHOP_COMPAT_FUNCTION(void, qspi_wait, (qspi_msg_t msg), wait(prepared(msg)))

ONEHOP_COMPAT_API void qspi_sum_double(double* x) {
  guarded("qspi_sum_double", [&] {
    const std::span mine(&checked_value(x), 1);
    const std::span<const std::byte> values = qspi().everybody.gather(std::as_bytes(mine));
    double sum = 0;
    for (std::size_t at = 0; at < values.size(); at += sizeof(double)) {
      double value = 0;
      std::memcpy(&value, values.data() + at, sizeof value);
      sum = at == 0 ? value : sum + value;
    }
    *x = sum;
  });
}
