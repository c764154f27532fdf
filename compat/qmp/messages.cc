// Messages. Each node declares its own, then starts them and waits for them.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compat/qmp/state.h"
#include "onehop/error.h"

using onehop::BadInput;
using onehop::compat::checked_span;
using onehop::compat::guarded;
using onehop::compat::Handles;
using onehop::compat::Mailbox;
using onehop::compat::Message;
using namespace onehop::compat::qmp;

struct QMP_msghandle_struct {
  struct Part {
    bool sends = false;
    QMP_msgmem_struct memory;  // as it was declared
    Message message;
    bool allocated = false;  // its address is in memory of QMP_allocate_memory
  };
  std::unique_ptr<Part> own;  // set unless the handle is a multiple one
  std::vector<QMP_msghandle_t> children;
  std::vector<Part*> parts;  // all parts, including those of the children
  bool active = false;
  bool is_child = false;
};

namespace {

constinit Handles<QMP_msghandle_t, QMP_msghandle_struct, 0x63> handles("a message handle", "QMP_declare_...");

QMP_msghandle_t declare(QMP_comm_t comm, QMP_msgmem_t mem, int node, bool sends, Kind kind) {
  const QMP_comm_struct& among = checked(comm);
  const QMP_msgmem_struct& memory = checked(mem);
  if (node < 0 || node >= among.size()) {
    throw BadInput("expected a node from 0 to " + std::to_string(among.size() - 1) + ", found " + std::to_string(node));
  }
  QMP_msghandle_struct handle;
  handle.own = std::make_unique<QMP_msghandle_struct::Part>();
  handle.own->sends = sends;
  handle.own->memory = memory;
  Message& message = handle.own->message;
  message.peer = among.ranks[static_cast<std::size_t>(node)];
  message.tag = 4 * among.number + kind;
  message.layout = memory.layout.get();
  message.base = memory.base;
  handle.own->allocated = is_allocated(memory.base);
  handle.parts = {handle.own.get()};
  return handles.add(std::move(handle));
}

QMP_msghandle_t declare_relative(QMP_comm_t comm, QMP_msgmem_t memory, int axis, int direction, bool sends) {
  const Topology& topology = topology_of(comm);
  if (axis < 0 || axis >= static_cast<int>(topology.sizes.size())) {
    throw BadInput("expected an axis from 0 to " + std::to_string(topology.sizes.size() - 1) + ", found " +
                   std::to_string(axis));
  }
  // A message received from above was sent downwards.
  const Kind kind = (direction > 0) == sends ? upwards : downwards;
  return declare(comm, memory, topology.neighbour(axis, direction), sends, kind);
}

QMP_msghandle_struct& checked(QMP_msghandle_t handle) {
  QMP_msghandle_struct& found = handles.at(handle);
  if (found.is_child) throw BadInput("expected a handle by itself, found one that is part of a multiple one");
  return found;
}

QMP_msghandle_struct& idle(QMP_msghandle_t handle) {
  QMP_msghandle_struct& found = checked(handle);
  if (found.active) throw BadInput("expected a handle that is not under way; wait for it first");
  return found;
}

QMP_msghandle_t declare_multiple(std::span<const QMP_msghandle_t> children) {
  for (const QMP_msghandle_t child : children) static_cast<void>(idle(child));
  std::vector<QMP_msghandle_t> sorted(children.begin(), children.end());
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) {
    throw BadInput("expected every handle once, found one of them twice");
  }
  QMP_msghandle_struct made;
  made.children.assign(children.begin(), children.end());
  for (const QMP_msghandle_t child : children) {
    QMP_msghandle_struct& part = handles.at(child);
    made.parts.insert(made.parts.end(), part.parts.begin(), part.parts.end());
    part.is_child = true;
  }
  return handles.add(std::move(made));
}

void free_with_children(QMP_msghandle_t handle) {
  for (const QMP_msghandle_t child : handles.at(handle).children) free_with_children(child);
  handles.remove(handle);
}

void change_addresses(QMP_msghandle_t handle, std::span<void* const> addresses, bool multiple) {
  const QMP_msghandle_struct& changed = idle(handle);
  if ((changed.own == nullptr) != multiple || changed.parts.size() != addresses.size()) {
    throw BadInput("expected a handle of " + std::to_string(addresses.size()) + " message(s), found one of " +
                   std::to_string(changed.parts.size()));
  }
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    auto* const base = static_cast<std::byte*>(addresses[i]);
    check_address(changed.parts[i]->memory, base);
    changed.parts[i]->message.base = base;
    changed.parts[i]->allocated = is_allocated(base);
  }
}

void start(QMP_msghandle_t handle) {
  QMP_msghandle_struct& started = idle(handle);
  for (const QMP_msghandle_struct::Part* part : started.parts) {
    if (part->allocated && !is_allocated(part->message.base)) {
      throw BadInput("expected a message in memory of QMP_allocate_memory, found one whose memory was freed");
    }
  }
  Mailbox& mailbox = qmp().mailbox;
  started.active = true;
  for (QMP_msghandle_struct::Part* part : started.parts) {
    part->sends ? mailbox.send(part->message, Mailbox::Slot::hold) : mailbox.receive(part->message);
  }
  mailbox.flush();
}

void wait(QMP_msghandle_t handle) {
  QMP_msghandle_struct& awaited = checked(handle);
  if (!awaited.active) return;
  qmp().mailbox.wait([&parts = awaited.parts, next = std::size_t{0}]() mutable {
    while (next < parts.size() && !parts[next]->message.active()) ++next;
    return next < parts.size() ? parts[next]->message.peer : -1;
  });
  awaited.active = false;
}

bool is_complete(QMP_msghandle_t handle) {
  QMP_msghandle_struct& asked = checked(handle);
  if (!asked.active) return true;
  qmp().mailbox.progress();
  asked.active =
      std::ranges::any_of(asked.parts, [](const QMP_msghandle_struct::Part* part) { return part->message.active(); });
  return !asked.active;
}

}  // namespace

ONEHOP_COMPAT_FUNCTION(QMP_msghandle_t, QMP_comm_declare_receive_relative,
                       (QMP_comm_t comm, QMP_msgmem_t m, int axis, int dir, int /*priority*/),
                       declare_relative(comm, m, axis, dir, false))
QMP_OF_DEFAULT(QMP_msghandle_t, declare_receive_relative, (QMP_msgmem_t m, int axis, int dir, int priority), m, axis,
               dir, priority)
ONEHOP_COMPAT_FUNCTION(QMP_msghandle_t, QMP_comm_declare_send_relative,
                       (QMP_comm_t comm, QMP_msgmem_t m, int axis, int dir, int /*priority*/),
                       declare_relative(comm, m, axis, dir, true))
QMP_OF_DEFAULT(QMP_msghandle_t, declare_send_relative, (QMP_msgmem_t m, int axis, int dir, int priority), m, axis, dir,
               priority)
ONEHOP_COMPAT_FUNCTION(QMP_msghandle_t, QMP_comm_declare_send_to,
                       (QMP_comm_t comm, QMP_msgmem_t m, int rem_node_rank, int /*priority*/),
                       declare(comm, m, rem_node_rank, true, by_number))
QMP_OF_DEFAULT(QMP_msghandle_t, declare_send_to, (QMP_msgmem_t m, int rem_node_rank, int priority), m, rem_node_rank,
               priority)
ONEHOP_COMPAT_FUNCTION(QMP_msghandle_t, QMP_comm_declare_receive_from,
                       (QMP_comm_t comm, QMP_msgmem_t m, int rem_node_rank, int /*priority*/),
                       declare(comm, m, rem_node_rank, false, by_number))
QMP_OF_DEFAULT(QMP_msghandle_t, declare_receive_from, (QMP_msgmem_t m, int rem_node_rank, int priority), m,
               rem_node_rank, priority)
ONEHOP_COMPAT_API QMP_status_t QMP_change_address(QMP_msghandle_t msg, void* addr) {
  return guarded(__func__, [&] { return change_addresses(msg, {&addr, 1}, false), QMP_SUCCESS; });
}
ONEHOP_COMPAT_API QMP_status_t QMP_change_address_multiple(QMP_msghandle_t msg, void* addr[], int naddr) {
  return guarded(__func__, [&] {
    change_addresses(msg, checked_span(addr, naddr), true);
    return QMP_SUCCESS;
  });
}
ONEHOP_COMPAT_FUNCTION(QMP_msghandle_t, QMP_declare_multiple, (QMP_msghandle_t msgh[], int num),
                       declare_multiple(checked_span(msgh, num)))
ONEHOP_COMPAT_FUNCTION(QMP_msghandle_t, QMP_declare_send_recv_pairs, (QMP_msghandle_t msgh[], int num),
                       declare_multiple(checked_span(msgh, num)))
ONEHOP_COMPAT_API void QMP_free_msghandle(QMP_msghandle_t h) {
  guarded(__func__, [&] {
    if (h == nullptr) return;
    static_cast<void>(idle(h));
    free_with_children(h);
  });
}
ONEHOP_COMPAT_FUNCTION(QMP_status_t, QMP_clear_to_send, (QMP_msghandle_t mh, QMP_clear_to_send_t /*cts*/), idle(mh),
                       QMP_SUCCESS)
ONEHOP_COMPAT_FUNCTION(QMP_status_t, QMP_start, (QMP_msghandle_t h), start(h), QMP_SUCCESS)
ONEHOP_COMPAT_FUNCTION(QMP_status_t, QMP_wait, (QMP_msghandle_t h), wait(h), QMP_SUCCESS)
ONEHOP_COMPAT_API QMP_status_t QMP_wait_all(QMP_msghandle_t h[], int num) {
  return guarded(__func__, [&] {
    for (const QMP_msghandle_t each : checked_span(h, num)) wait(each);
    return QMP_SUCCESS;
  });
}
ONEHOP_COMPAT_FUNCTION(QMP_bool_t, QMP_is_complete, (QMP_msghandle_t h), is_complete(h) ? QMP_TRUE : QMP_FALSE)
