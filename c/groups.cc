// Errors and groups of the C interface.
#include <dlfcn.h>

#include <cstdint>
#include <exception>

#include "c/handles.h"
#include "onehop/version.h"

namespace onehop::c {

constinit compat::Handles<onehop_group*, GroupObject, 1> groups{"a group", "onehop_group_..."};
constinit compat::Handles<onehop_halo*, HaloSpec, 3> halos{"a halo", "onehop_halo_new"};
constinit compat::Handles<onehop_schedule*, Schedule, 5> schedules{"a schedule", "onehop_schedule_..."};
constinit compat::Handles<onehop_plan*, Plan, 7> plans{"a plan", "onehop_plan_new"};
constinit compat::Handles<onehop_request*, collectives::SendRequest, 9> requests{"a request", "onehop_isend"};

namespace {

thread_local std::string message;

int code_of(const std::exception& error) {
  if (dynamic_cast<const BadInput*>(&error) != nullptr) return ONEHOP_BAD_INPUT;
  if (dynamic_cast<const PeerLost*>(&error) != nullptr) return ONEHOP_PEER_LOST;
  if (dynamic_cast<const Mismatch*>(&error) != nullptr) return ONEHOP_MISMATCH;
  return dynamic_cast<const Timeout*>(&error) != nullptr ? ONEHOP_TIMEOUT : ONEHOP_ERROR;
}

// The communicator of a Fortran program, as an MPI_Comm of up to 8 bytes. MPICH has no function for it: its handles are
// these numbers.
Group group_of(int number) {
  const auto says = [](const char* name) {
    int flag = 0;
    const auto ask = reinterpret_cast<int (*)(int*)>(::dlsym(RTLD_DEFAULT, name));
    return ask != nullptr && ask(&flag) == 0 && flag != 0;
  };
  if (!says("MPI_Initialized"))
    throw Error("expected a program that is linked with MPI and has called MPI_Init, found none");
  if (says("MPI_Finalized")) throw Error("expected a running MPI, found that the program has called MPI_Finalize");
  auto comm = static_cast<std::uint64_t>(static_cast<std::uint32_t>(number));
  for (const char* name : {"MPI_Comm_fromint", "MPI_Comm_f2c"}) {
    if (const auto convert = reinterpret_cast<std::uint64_t (*)(int)>(::dlsym(RTLD_DEFAULT, name))) {
      comm = convert(number);
      break;
    }
  }
  if (comm == 0) throw BadInput("expected the number of a communicator, found " + std::to_string(number));
  return Group::from_mpi(&comm);
}

// A part may have no group for this rank.
void split(const Group& group, int color, int key, onehop_group** part) {
  check_pointer(part, "a place for the result");
  Group made = group.split(color, key);
  *part = made.valid() ? groups.add(std::move(made)) : nullptr;
}

void check_length(int64_t expected, int64_t found) {
  if (expected != found)
    throw BadInput("expected a length of " + std::to_string(expected) + ", found " + std::to_string(found));
}

}  // namespace

int failed(const char* where) noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      message = std::string(where) + ": expected enough memory, found none left";
    } catch (const std::exception& error) {
      message = std::string(where) + ": " + error.what();
      return code_of(error);
    }
  } catch (...) {
    message.clear();
  }
  return ONEHOP_ERROR;
}

void refuse_null(const char* name) { throw BadInput(std::string("expected ") + name + ", found a null pointer"); }

}  // namespace onehop::c

using namespace onehop::c;  // NOLINT(google-build-using-namespace)
using onehop::Group;

int onehop_interface_version(void) { return ONEHOP_INTERFACE_VERSION; }
const char* onehop_version(void) { return onehop::version(); }
const char* onehop_error_message(void) { return message.c_str(); }

ONEHOP_C_FUNCTION(onehop_check_length, (int64_t expected, int64_t found), check_length(expected, found))

ONEHOP_C_FUNCTION(onehop_group_world, (onehop_group * *group), make(groups, group, Group::world()))
ONEHOP_C_FUNCTION(onehop_group_alone, (onehop_group * *group), make(groups, group, Group::alone()))
ONEHOP_C_FUNCTION(onehop_group_from_mpi_handle, (const void* comm, onehop_group** group),
                  check_pointer(comm, "a communicator"), make(groups, group, Group::from_mpi(comm)))
ONEHOP_C_FUNCTION(onehop_group_from_mpi_fint, (int number, onehop_group** group), make(groups, group, group_of(number)))
ONEHOP_C_FUNCTION(onehop_group_split, (onehop_group * group, int color, int key, onehop_group** part),
                  split(groups.at(group).group, color, key, part))
ONEHOP_C_FUNCTION(onehop_group_rank, (onehop_group * group, int* rank), put(rank, groups.at(group).group.rank()))
ONEHOP_C_FUNCTION(onehop_group_size, (onehop_group * group, int* size), put(size, groups.at(group).group.size()))
ONEHOP_C_FUNCTION(onehop_group_barrier, (onehop_group * group), groups.at(group).group.barrier())
ONEHOP_C_FUNCTION(onehop_group_set_timeout, (onehop_group * group, double seconds),
                  groups.at(group).group.set_timeout(seconds))
ONEHOP_C_FUNCTION(onehop_group_free, (onehop_group * *group), release(groups, group))
