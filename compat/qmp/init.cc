// Initialisation and finalisation of QMP: its command-line arguments and its first communicators.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "compat/qmp/state.h"
#include "onehop/error.h"
#include "onehop/group.h"

using onehop::BadInput;
using onehop::Group;
using onehop::compat::checked_span;
using onehop::compat::checked_value;
using onehop::compat::Collectives;
using onehop::compat::guarded;
using namespace onehop::compat::qmp;

namespace onehop::compat::qmp {

std::unique_ptr<Qmp> the_qmp;
int the_node = 0;
int all_nodes = 0;

Qmp& qmp() {
  if (the_qmp == nullptr) throw BadInput("expected QMP_init_msg_passing to be called before");
  return *the_qmp;
}

}  // namespace onehop::compat::qmp

namespace {

// Removes `name` and the numbers that follow it from the arguments, and returns the numbers.
std::vector<int> take_argument(int& argc, char** argv, std::string_view name) {
  std::vector<int> numbers;
  for (int i = 1; i < argc; ++i) {
    if (argv[i] != name) continue;
    int end = i + 1;
    while (end < argc && std::isdigit(static_cast<unsigned char>(argv[end][0])) != 0) {
      int number = 0;
      const std::string_view text = argv[end++];
      if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc{}) {
        throw BadInput(std::string(name) + ": expected numbers below 2^31, found '" + std::string(text) + "'");
      }
      numbers.push_back(number);
    }
    for (int k = end; k <= argc; ++k) argv[k - (end - i)] = argv[k];
    argc -= end - i;
  }
  return numbers;
}

int job_of(const Qmp& state) {
  const std::vector<int>& jobs = state.arguments.jobs;
  if (jobs.empty()) return 0;
  const QMP_comm_struct& all = checked(state.allocated);
  if (!all.topology) {
    if (jobs.front() < 1 || jobs.front() > all.size()) {
      throw BadInput("-qmp-job: expected 1 to " + std::to_string(all.size()) + " jobs, found " +
                     std::to_string(jobs.front()));
    }
    return static_cast<int>(std::int64_t{all.me} * jobs.front() / all.size());
  }
  if (jobs.size() != all.topology->sizes.size()) {
    throw BadInput("-qmp-job: expected " + std::to_string(all.topology->sizes.size()) +
                   " numbers, as -qmp-geom has, found " + std::to_string(jobs.size()));
  }
  int job = 0;
  for (std::size_t axis = jobs.size(); axis-- > 0;) {
    const int size = all.topology->sizes[axis];
    if (jobs[axis] < 1 || size % jobs[axis] != 0) {
      throw BadInput("-qmp-job: expected divisors of the geometry, found " + std::to_string(jobs[axis]));
    }
    job = job * jobs[axis] + all.topology->mine[axis] * jobs[axis] / size;
  }
  return job;
}

void set_up(int& argc, char** argv) {
  Qmp& state = *the_qmp;
  state.arguments.geometry = take_argument(argc, argv, "-qmp-geom");
  state.arguments.allocated_map = take_argument(argc, argv, "-qmp-alloc-map");
  state.arguments.logical_map = take_argument(argc, argv, "-qmp-logic-map");
  state.arguments.jobs = take_argument(argc, argv, "-qmp-job");
  state.allocated = make_comm(Collectives::all(state.mailbox.size()), state.mailbox.rank(), 0);
  QMP_comm_struct& all = checked(state.allocated);
  all.key = state.mailbox.rank();
  ProgramMpi().set_world(all);
  if (declare_topology(state.allocated, state.arguments.geometry, state.arguments.allocated_map) != QMP_SUCCESS) {
    throw BadInput("-qmp-geom does not fit the number of nodes");
  }
  if (all.topology) state.interconnect = QMP_MESH;
  state.job = split(state.allocated, job_of(state), 0);
  if (!state.arguments.jobs.empty() && all.topology) {
    std::vector<int> sizes = all.topology->sizes;
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] /= state.arguments.jobs[i];
    declare_topology(state.job, sizes, state.arguments.allocated_map);
  }
  state.standard = split(state.job, 0, 0);
}

}  // namespace

ONEHOP_COMPAT_API QMP_status_t QMP_init_msg_passing(int* argc, char*** argv, QMP_thread_level_t required,
                                                    QMP_thread_level_t* provided) {
  return guarded(__func__, [&] {
    if (the_qmp != nullptr) throw BadInput("expected to be called once, found QMP initialised already");
    if (required < QMP_THREAD_SINGLE || required > QMP_THREAD_MULTIPLE) {
      throw BadInput("expected a thread level from 0 to 3, found " + std::to_string(required));
    }
    if (argc != nullptr) checked_span(checked_value(argv), *argc);
    int no_arguments = 0;
    if (provided != nullptr) *provided = std::min(required, QMP_THREAD_SERIALIZED);
    const ProgramMpi mpi;
    int begun = 0;
    int level = 0;
    if (mpi.is_there()) mpi.initialised(&begun);
    if (mpi.is_there() && begun == 0) mpi.init(argc, argv, static_cast<int>(required), &level);
    the_qmp = std::make_unique<Qmp>(Group::world());
    the_node = the_qmp->mailbox.rank();
    all_nodes = the_qmp->mailbox.size();
    argc == nullptr ? set_up(no_arguments, nullptr) : set_up(*argc, *argv);
    return QMP_SUCCESS;
  });
}

ONEHOP_COMPAT_API QMP_bool_t QMP_is_initialized() { return the_qmp != nullptr ? QMP_TRUE : QMP_FALSE; }

ONEHOP_COMPAT_API void QMP_finalize_msg_passing() {
  guarded(__func__, [] {
    static_cast<void>(qmp());
    the_qmp.reset();
    Group::close_world();
    const ProgramMpi mpi;
    if (mpi.is_running()) mpi.finalise();
  });
}

ONEHOP_COMPAT_API void QMP_abort(int error_code) {
  onehop::compat::end_program(__func__, "rank " + std::to_string(the_node) + ": error " + std::to_string(error_code),
                              error_code);
}

ONEHOP_COMPAT_API void QMP_abort_string(int error_code, char* message) {
  onehop::compat::end_program(
      __func__, "rank " + std::to_string(the_node) + ": " + (message == nullptr ? "no message" : message), error_code);
}
