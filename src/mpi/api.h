// The functions of MPI that onehop calls, bound to one library.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <variant>

#include "onehop/error.h"
#include "src/mpi/abi.h"
#include "src/mpi/library.h"

namespace onehop::detail {

template <class Abi>
struct MpiApi {
  using Comm = typename Abi::Comm;
  using Datatype = typename Abi::Datatype;
  using Request = typename Abi::Request;
  using Status = typename Abi::Status;

  explicit MpiApi(const MpiLibrary& from);

  const MpiLibrary& library;
  const MpiHandles<Abi> handles;

  int (*init_thread)(int*, char***, int, int*);
  int (*finalize)();
  int (*query_thread)(int*);
  int (*error_string)(int, char*, int*);
  int (*error_class)(int, int*);
  int (*comm_rank)(Comm, int*);
  int (*comm_size)(Comm, int*);
  int (*comm_dup)(Comm, Comm*);
  int (*comm_split)(Comm, int, int, Comm*);
  int (*comm_free)(Comm*);
  int (*comm_test_inter)(Comm, int*);
  int (*comm_get_errhandler)(Comm, typename Abi::Errhandler*);
  int (*comm_set_errhandler)(Comm, typename Abi::Errhandler);
  int (*errhandler_free)(typename Abi::Errhandler*);
  int (*comm_get_attr)(Comm, int, void*, int*);
  int (*comm_set_attr)(Comm, int, void*);
  int (*comm_create_keyval)(int (*)(Comm, int, void*, void*, void*, int*), int (*)(Comm, int, void*, void*), int*,
                            void*);
  int (*iallgather)(const void*, int, Datatype, void*, int, Datatype, Comm, Request*);
  int (*iallgatherv)(const void*, int, Datatype, void*, const int*, const int*, Datatype, Comm, Request*);
  int (*isend)(const void*, int, Datatype, int, int, Comm, Request*);
  int (*irecv)(void*, int, Datatype, int, int, Comm, Request*);
  int (*test)(Request*, int*, Status*);
  int (*cancel)(Request*);
  int (*iprobe)(int, int, Comm, int*, Status*);
  int (*improbe)(int, int, Comm, int*, typename Abi::Message*, Status*);
  int (*imrecv)(void*, int, Datatype, typename Abi::Message*, Request*);

  // Calls a function, under a lock if MPI's thread level requires one. Throws Error with MPI's message if it fails;
  // PeerLost with rank -1 if the error means that a rank has ended. Throws Error once the program has finalised MPI,
  // which would otherwise end the program.
  template <class... Parameters, class... Arguments>
  void call(const char* what, int (*function)(Parameters...), Arguments... arguments) const {
    int code = 0;
    if (finalised_.load(std::memory_order_relaxed)) [[unlikely]]
      throw_finalised(what);
    {
      const auto guard = lock();
      code = function(arguments...);
    }
    if (code != 0) [[unlikely]]
      fail(what, code);
  }
  // Whether the operation is complete; then the request is null.
  [[nodiscard]] bool done(Request& request) const {
    int flag = 0;
    call("MPI_Test", test, &request, &flag, Abi::status_ignore());
    return flag != 0;
  }
  // Whether a thread other than the one that initialised MPI may call it.
  [[nodiscard]] bool any_thread() const noexcept { return any_thread_.load(std::memory_order_relaxed); }
  // A duplicate of a communicator that reports errors instead of ending the program. Collective.
  [[nodiscard]] Comm duplicate(Comm comm) const;
  // Frees a communicator of onehop; does nothing after MPI was finalised. For destructors: ignores errors.
  void free_quietly(Comm& comm) const noexcept;
  // Throws BadInput unless the handle is a communicator of one group of ranks, as far as MPI can tell.
  void check_communicator(Comm comm) const;
  [[noreturn]] void fail(const char* what, int code) const;

  // Asks MPI at which level it runs, and to be told when the program finalises it; to be called once it is initialised.
  void learn_state() const;

 private:
  [[nodiscard]] std::string words_of(int code) const;
  [[noreturn]] void throw_finalised(const char* what) const;
  // Held during calls unless several threads may call MPI at once.
  [[nodiscard]] std::unique_lock<std::mutex> lock() const {
    return serialised_.load(std::memory_order_relaxed) ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }
  mutable std::mutex mutex_;
  mutable std::atomic<bool> serialised_{true};
  mutable std::atomic<bool> any_thread_{false};
  mutable std::atomic<bool> finalised_{false};
  mutable std::once_flag watched_;
};

extern template struct MpiApi<OpenMpiAbi>;
extern template struct MpiApi<MpichAbi>;
extern template struct MpiApi<StandardAbi>;

// The functions of one of the three ABIs. std::visit selects the code that is compiled for it.
using AnyMpi = std::variant<const MpiApi<OpenMpiAbi>*, const MpiApi<MpichAbi>*, const MpiApi<StandardAbi>*>;

// The functions of a library, bound once. They live to the end of the process.
[[nodiscard]] AnyMpi mpi_api(const MpiLibrary& library);

// Returns the MPI that is running, or else the one that find_mpi_library finds, and initialises it if necessary. Throws
// Error if there is none.
[[nodiscard]] AnyMpi running_mpi();

}  // namespace onehop::detail
