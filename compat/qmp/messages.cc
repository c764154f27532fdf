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
using onehop::compat::guarded;
using onehop::compat::Layout;
using onehop::compat::Mailbox;
using onehop::compat::Message;
using namespace onehop::compat::qmp;

struct QMP_msghandle_struct {
  struct Part {
    bool sends = false;
    std::shared_ptr<const Layout> layout;
    Message message;
  };
  std::unique_ptr<Part> own;  // set unless the handle is a multiple one
  std::vector<std::unique_ptr<QMP_msghandle_struct>> children;
  std::vector<Part*> parts;  // all parts, including those of the children
  bool active = false;
  bool is_child = false;
};

namespace {

QMP_msghandle_t declare(QMP_comm_t comm, QMP_msgmem_t memory, int node, bool sends, Kind kind) {
  if (memory == nullptr) throw BadInput("expected a message memory, found a null pointer");
  if (node < 0 || node >= checked(comm).size()) {
    throw BadInput("expected a node from 0 to " + std::to_string(comm->size() - 1) + ", found " + std::to_string(node));
  }
  auto handle = std::make_unique<QMP_msghandle_struct>();
  handle->own = std::make_unique<QMP_msghandle_struct::Part>();
  handle->own->sends = sends;
  handle->own->layout = memory->layout;
  Message& message = handle->own->message;
  message.peer = comm->ranks[static_cast<std::size_t>(node)];
  message.tag = 4 * comm->number + kind;
  message.layout = handle->own->layout.get();
  message.base = memory->base;
  handle->parts = {handle->own.get()};
  return handle.release();
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
  if (handle == nullptr) throw BadInput("expected a message handle, found a null pointer");
  if (handle->is_child) throw BadInput("expected a handle by itself, found one that is part of a multiple one");
  return *handle;
}

QMP_msghandle_t declare_multiple(std::span<const QMP_msghandle_t> handles) {
  for (const QMP_msghandle_t handle : handles) {
    if (checked(handle).active) throw BadInput("a handle that is under way cannot become part of another");
  }
  auto made = std::make_unique<QMP_msghandle_struct>();
  for (const QMP_msghandle_t handle : handles) {
    made->parts.insert(made->parts.end(), handle->parts.begin(), handle->parts.end());
    handle->is_child = true;
    made->children.emplace_back(handle);
  }
  return made.release();
}

void change_addresses(QMP_msghandle_t handle, std::span<void* const> addresses, bool multiple) {
  if (checked(handle).active) throw BadInput("the addresses of a handle that is under way cannot be changed");
  if ((handle->own == nullptr) != multiple || handle->parts.size() != addresses.size()) {
    throw BadInput("expected a handle of " + std::to_string(addresses.size()) + " message(s), found one of " +
                   std::to_string(handle->parts.size()));
  }
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    handle->parts[i]->message.base = static_cast<std::byte*>(addresses[i]);
  }
}

void start(QMP_msghandle_t handle) {
  if (checked(handle).active) throw BadInput("expected a handle that is not under way; wait for it first");
  Mailbox& mailbox = qmp().mailbox;
  handle->active = true;
  for (QMP_msghandle_struct::Part* part : handle->parts) {
    part->sends ? mailbox.send(part->message, Mailbox::Slot::hold) : mailbox.receive(part->message);
  }
  mailbox.flush();
}

void wait(QMP_msghandle_t handle) {
  if (!checked(handle).active) return;
  qmp().mailbox.wait([&parts = handle->parts, next = std::size_t{0}]() mutable {
    while (next < parts.size() && !parts[next]->message.active()) ++next;
    return next < parts.size() ? parts[next]->message.peer : -1;
  });
  handle->active = false;
}

bool is_complete(QMP_msghandle_t handle) {
  if (!checked(handle).active) return true;
  qmp().mailbox.progress();
  handle->active =
      std::ranges::any_of(handle->parts, [](const QMP_msghandle_struct::Part* part) { return part->message.active(); });
  return !handle->active;
}

}  // namespace

ONEHOP_COMPAT_API QMP_msghandle_t QMP_comm_declare_receive_relative(QMP_comm_t comm, QMP_msgmem_t m, int axis, int dir,
                                                                    int /*priority*/) {
  return guarded(__func__, [&] { return declare_relative(comm, m, axis, dir, false); });
}
ONEHOP_COMPAT_API QMP_msghandle_t QMP_declare_receive_relative(QMP_msgmem_t m, int axis, int dir, int priority) {
  return QMP_comm_declare_receive_relative(QMP_comm_get_default(), m, axis, dir, priority);
}
ONEHOP_COMPAT_API QMP_msghandle_t QMP_comm_declare_send_relative(QMP_comm_t comm, QMP_msgmem_t m, int axis, int dir,
                                                                 int /*priority*/) {
  return guarded(__func__, [&] { return declare_relative(comm, m, axis, dir, true); });
}
ONEHOP_COMPAT_API QMP_msghandle_t QMP_declare_send_relative(QMP_msgmem_t m, int axis, int dir, int priority) {
  return QMP_comm_declare_send_relative(QMP_comm_get_default(), m, axis, dir, priority);
}
ONEHOP_COMPAT_API QMP_msghandle_t QMP_comm_declare_send_to(QMP_comm_t comm, QMP_msgmem_t m, int rem_node_rank,
                                                           int /*priority*/) {
  return guarded(__func__, [&] { return declare(comm, m, rem_node_rank, true, by_number); });
}
ONEHOP_COMPAT_API QMP_msghandle_t QMP_declare_send_to(QMP_msgmem_t m, int rem_node_rank, int priority) {
  return QMP_comm_declare_send_to(QMP_comm_get_default(), m, rem_node_rank, priority);
}
ONEHOP_COMPAT_API QMP_msghandle_t QMP_comm_declare_receive_from(QMP_comm_t comm, QMP_msgmem_t m, int rem_node_rank,
                                                                int /*priority*/) {
  return guarded(__func__, [&] { return declare(comm, m, rem_node_rank, false, by_number); });
}
ONEHOP_COMPAT_API QMP_msghandle_t QMP_declare_receive_from(QMP_msgmem_t m, int rem_node_rank, int priority) {
  return QMP_comm_declare_receive_from(QMP_comm_get_default(), m, rem_node_rank, priority);
}
ONEHOP_COMPAT_API QMP_status_t QMP_change_address(QMP_msghandle_t msg, void* addr) {
  return guarded(__func__, [&] { return change_addresses(msg, {&addr, 1}, false), QMP_SUCCESS; });
}
ONEHOP_COMPAT_API QMP_status_t QMP_change_address_multiple(QMP_msghandle_t msg, void* addr[], int naddr) {
  return guarded(__func__, [&] {
    change_addresses(msg, {addr, static_cast<std::size_t>(naddr)}, true);
    return QMP_SUCCESS;
  });
}
ONEHOP_COMPAT_API QMP_msghandle_t QMP_declare_multiple(QMP_msghandle_t msgh[], int num) {
  return guarded(__func__, [&] { return declare_multiple({msgh, static_cast<std::size_t>(num)}); });
}
ONEHOP_COMPAT_API QMP_msghandle_t QMP_declare_send_recv_pairs(QMP_msghandle_t msgh[], int num) {
  return guarded(__func__, [&] { return declare_multiple({msgh, static_cast<std::size_t>(num)}); });
}
ONEHOP_COMPAT_API void QMP_free_msghandle(QMP_msghandle_t h) {
  guarded(__func__, [&] {
    if (h == nullptr) return;
    if (checked(h).active) throw BadInput("expected a handle that is not under way; wait for it first");
    delete h;
  });
}
ONEHOP_COMPAT_API QMP_status_t QMP_clear_to_send(QMP_msghandle_t mh, QMP_clear_to_send_t /*cts*/) {
  return guarded(__func__, [&] {
    if (checked(mh).active) throw BadInput("expected a handle that is not under way; wait for it first");
    return QMP_SUCCESS;
  });
}
ONEHOP_COMPAT_API QMP_status_t QMP_start(QMP_msghandle_t h) {
  return guarded(__func__, [&] { return start(h), QMP_SUCCESS; });
}
ONEHOP_COMPAT_API QMP_status_t QMP_wait(QMP_msghandle_t h) {
  return guarded(__func__, [&] { return wait(h), QMP_SUCCESS; });
}
ONEHOP_COMPAT_API QMP_status_t QMP_wait_all(QMP_msghandle_t h[], int num) {
  for (int i = 0; i < num; ++i) QMP_wait(h[i]);
  return QMP_SUCCESS;
}
ONEHOP_COMPAT_API QMP_bool_t QMP_is_complete(QMP_msghandle_t h) {
  return guarded(__func__, [&] { return is_complete(h) ? QMP_TRUE : QMP_FALSE; });
}
