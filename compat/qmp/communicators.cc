// Communicators, and the functions that describe the machine.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compat/qmp/state.h"
#include "onehop/error.h"

using onehop::BadInput;
using onehop::compat::checked_value;
using onehop::compat::guarded;
using namespace onehop::compat::qmp;

namespace onehop::compat::qmp {

namespace {

constinit Handles<QMP_comm_t, QMP_comm_struct, 0x61> communicators("a communicator", "QMP_comm_split");

}  // namespace

Qmp::~Qmp() {
  for (const QMP_comm_t comm : communicators) qmp::communicators.remove(comm);
}

QMP_comm_struct& checked(QMP_comm_t comm) {
  static_cast<void>(qmp());
  return communicators.at(comm);
}

QMP_comm_t make_comm(std::vector<int> ranks, int me, std::uint32_t number) {
  QMP_comm_struct comm;
  comm.ranks = ranks;
  comm.me = me;
  comm.number = number;
  comm.collectives = std::make_unique<compat::Collectives>(qmp().mailbox, std::move(ranks), me, 4 * number + global);
  return qmp().communicators.emplace_back(communicators.add(std::move(comm)));
}

QMP_comm_t split(QMP_comm_t from, int color, int key) {
  struct Member {
    int color;
    int key;
    int node;
    std::uint32_t numbers;
  };
  if (color < 0) throw BadInput("expected a color of 0 or more, found " + std::to_string(color));
  QMP_comm_struct& whole = checked(from);
  const Member mine{color, key, whole.me, qmp().numbers};
  const std::span<const std::byte> all = whole.collectives->gather(std::as_bytes(std::span(&mine, 1)));
  std::vector<Member> members;
  std::set<int> colors;
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < whole.ranks.size(); ++i) {
    const Member member = value_at<Member>(all, i);
    if (member.color == color) members.push_back(member);
    colors.insert(member.color);
    number = std::max(number, member.numbers);
  }
  std::ranges::sort(members, {}, [](const Member& member) { return std::pair(member.key, member.node); });
  std::vector<int> ranks;
  int me = 0;
  for (const Member& member : members) {
    if (member.node == whole.me) me = static_cast<int>(ranks.size());
    ranks.push_back(whole.ranks[static_cast<std::size_t>(member.node)]);
  }
  qmp().numbers = number + 1;
  const QMP_comm_t made = make_comm(std::move(ranks), me, number + 1);
  QMP_comm_struct& part = checked(made);
  part.colors = static_cast<int>(colors.size());
  part.color = color;
  part.key = key;
  ProgramMpi().set_split(whole, part);
  return made;
}

}  // namespace onehop::compat::qmp

ONEHOP_COMPAT_FUNCTION(QMP_comm_t, QMP_comm_get_allocated, (), qmp().allocated)
ONEHOP_COMPAT_FUNCTION(QMP_status_t, QMP_comm_set_allocated, (QMP_comm_t comm), checked(comm), qmp().allocated = comm,
                       QMP_SUCCESS)
ONEHOP_COMPAT_FUNCTION(QMP_comm_t, QMP_comm_get_job, (), qmp().job)
ONEHOP_COMPAT_FUNCTION(QMP_status_t, QMP_comm_set_job, (QMP_comm_t comm), checked(comm), qmp().job = comm, QMP_SUCCESS)
ONEHOP_COMPAT_FUNCTION(QMP_comm_t, QMP_comm_get_default, (), qmp().standard)
ONEHOP_COMPAT_FUNCTION(QMP_status_t, QMP_comm_set_default, (QMP_comm_t comm), checked(comm), qmp().standard = comm,
                       QMP_SUCCESS)
ONEHOP_COMPAT_FUNCTION(QMP_status_t, QMP_comm_split, (QMP_comm_t comm, int color, int key, QMP_comm_t* newcomm),
                       checked_value(newcomm) = split(comm, color, key), QMP_SUCCESS)
ONEHOP_COMPAT_API QMP_status_t QMP_comm_free(QMP_comm_t comm) {
  return guarded(__func__, [&] {
    Qmp& state = qmp();
    static_cast<void>(checked(comm));
    if (comm == state.allocated || comm == state.job || comm == state.standard) {
      throw BadInput("expected a communicator that is not in use, found the allocated, the job's or the default one");
    }
    std::erase(state.communicators, comm);
    communicators.remove(comm);
    return QMP_SUCCESS;
  });
}
ONEHOP_COMPAT_FUNCTION(int, QMP_comm_get_number_of_colors, (QMP_comm_t comm), checked(comm).colors)
ONEHOP_COMPAT_FUNCTION(int, QMP_comm_get_color, (QMP_comm_t comm), checked(comm).color)
ONEHOP_COMPAT_FUNCTION(int, QMP_comm_get_key, (QMP_comm_t comm), checked(comm).key)
ONEHOP_COMPAT_API QMP_status_t QMP_get_hidden_comm(QMP_comm_t comm, void** hiddencomm) {
  return guarded(__func__, [&] {
    QMP_comm_struct& found = checked(comm);
    checked_value(hiddencomm) = found.has_mpi ? found.mpi.data() : nullptr;
    return found.has_mpi ? QMP_SUCCESS : QMP_NOTSUPPORTED;
  });
}
ONEHOP_COMPAT_API QMP_status_t QMP_get_mpi_comm(QMP_comm_t comm, void** mpicomm) {
  return QMP_get_hidden_comm(comm, mpicomm);
}

// The machine.

ONEHOP_COMPAT_FUNCTION(QMP_ictype_t, QMP_get_msg_passing_type, (), qmp().interconnect)
ONEHOP_COMPAT_FUNCTION(int, QMP_comm_get_number_of_nodes, (QMP_comm_t comm), checked(comm).size())
QMP_OF_DEFAULT(int, get_number_of_nodes, ())
ONEHOP_COMPAT_FUNCTION(int, QMP_comm_get_node_number, (QMP_comm_t comm), checked(comm).me)
QMP_OF_DEFAULT(int, get_node_number, ())
ONEHOP_COMPAT_API int QMP_get_number_of_jobs() { return QMP_comm_get_number_of_colors(QMP_comm_get_job()); }
ONEHOP_COMPAT_API int QMP_get_job_number() { return QMP_comm_get_color(QMP_comm_get_job()); }
ONEHOP_COMPAT_API int QMP_get_number_of_job_geometry_dimensions() {
  return QMP_comm_get_logical_number_of_dimensions(QMP_comm_get_job());
}
ONEHOP_COMPAT_API const int* QMP_get_job_geometry() { return QMP_comm_get_logical_dimensions(QMP_comm_get_job()); }
ONEHOP_COMPAT_API QMP_bool_t QMP_comm_is_primary_node(QMP_comm_t comm) {
  return QMP_comm_get_node_number(comm) == 0 ? QMP_TRUE : QMP_FALSE;
}
QMP_OF_DEFAULT(QMP_bool_t, is_primary_node, ())
ONEHOP_COMPAT_API int QMP_get_allocated_number_of_dimensions() {
  return QMP_comm_get_logical_number_of_dimensions(QMP_comm_get_allocated());
}
ONEHOP_COMPAT_API const int* QMP_get_allocated_dimensions() {
  return QMP_comm_get_logical_dimensions(QMP_comm_get_allocated());
}
ONEHOP_COMPAT_API const int* QMP_get_allocated_coordinates() {
  return QMP_comm_get_logical_coordinates(QMP_comm_get_allocated());
}
ONEHOP_COMPAT_API int QMP_io_node(int node) { return node; }
ONEHOP_COMPAT_API int QMP_master_io_node() { return 0; }
