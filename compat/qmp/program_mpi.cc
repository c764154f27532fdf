// The MPI library that the program is linked with, found at run time. QMP initialises and finalises it, and splits
// MPI's communicators together with its own.
#include <dlfcn.h>

#include <cstring>

#include "compat/qmp/state.h"

namespace {

template <class Pointer>
void load(Pointer& pointer, const char* name) {
  pointer = reinterpret_cast<Pointer>(::dlsym(RTLD_DEFAULT, name));
}

}  // namespace

namespace onehop::compat::qmp {

ProgramMpi::ProgramMpi() {
  load(initialised, "MPI_Initialized");
  load(finalised, "MPI_Finalized");
  load(init, "MPI_Init_thread");
  load(finalise, "MPI_Finalize");
  load(split, "MPI_Comm_split");
  load(size, "MPI_Comm_size");
  load(open_mpi_world, "ompi_mpi_comm_world");
}

bool ProgramMpi::is_running() const {
  int begun = 0;
  int ended = 0;
  if (!is_there() || split == nullptr || size == nullptr) return false;
  initialised(&begun);
  finalised(&ended);
  return begun != 0 && ended == 0;
}

void ProgramMpi::set_world(QMP_comm_struct& comm) const {
  constexpr int mpich_world = 0x44000000;
  if (!is_running()) return;
  int ranks = 0;
  if (open_mpi_world != nullptr) {
    std::memcpy(comm.mpi.data(), static_cast<const void*>(&open_mpi_world), sizeof open_mpi_world);
    reinterpret_cast<int (*)(void*, int*)>(size)(open_mpi_world, &ranks);
  } else {
    std::memcpy(comm.mpi.data(), &mpich_world, sizeof mpich_world);
    reinterpret_cast<int (*)(int, int*)>(size)(mpich_world, &ranks);
  }
  comm.has_mpi = ranks == comm.size();
}

void ProgramMpi::set_split(const QMP_comm_struct& from, QMP_comm_struct& to) const {
  if (!from.has_mpi || !is_running()) return;
  if (open_mpi_world != nullptr) {
    void* whole = nullptr;
    std::memcpy(static_cast<void*>(&whole), from.mpi.data(), sizeof whole);
    reinterpret_cast<int (*)(void*, int, int, void*)>(split)(whole, to.color, to.key, to.mpi.data());
  } else {
    int whole = 0;
    std::memcpy(&whole, from.mpi.data(), sizeof whole);
    reinterpret_cast<int (*)(int, int, int, void*)>(split)(whole, to.color, to.key, to.mpi.data());
  }
  to.has_mpi = true;
}

}  // namespace onehop::compat::qmp
