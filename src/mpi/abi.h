// The three binary interfaces (ABIs) of MPI libraries: the types of their handles and the values of their constants.
// Nothing here comes from an mpi.h; the code that uses MPI is a template over one of these.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace onehop::detail {

// The predefined handles of an interface that onehop uses.
template <class Abi>
struct MpiHandles {
  typename Abi::Comm comm_world{};
  typename Abi::Comm comm_self{};
  typename Abi::Comm comm_null{};
  typename Abi::Datatype byte{};
  typename Abi::Datatype float32{};
  typename Abi::Datatype float64{};
  typename Abi::Op sum{};
  typename Abi::Info info_null{};
  typename Abi::Request request_null{};
  typename Abi::Errhandler errors_return{};
};

// Handles are addresses of objects inside the library.
struct OpenMpiAbi {
  static constexpr std::string_view name = "Open MPI";
  using Comm = struct OpenMpiComm*;
  using Datatype = struct OpenMpiDatatype*;
  using Op = struct OpenMpiOp*;
  using Info = struct OpenMpiInfo*;
  using Request = struct OpenMpiRequest*;
  using Message = struct OpenMpiMessage*;
  using Errhandler = struct OpenMpiErrhandler*;
  using Win = struct OpenMpiWin*;
  using Status = void;  // never read

  static constexpr int thread_serialized = 2;
  static constexpr int thread_multiple = 3;
  static constexpr int any_source = -1;
  static constexpr int any_tag = -1;
  static constexpr int undefined = -32766;
  // Error classes that mean that another rank has ended: aborted, failed, failed while pending, revoked.
  static constexpr std::array lost_peer = {74, 75, 76, 77};
  static constexpr int tag_ub = 0;
  static Status* status_ignore() noexcept { return nullptr; }
  static const void* in_place() noexcept { return reinterpret_cast<const void*>(std::uintptr_t{1}); }

  // `symbol(name)` returns the address of one of the library's objects, or throws.
  template <class Symbol>
  static MpiHandles<OpenMpiAbi> handles(const Symbol& symbol) {
    return {.comm_world = static_cast<Comm>(symbol("ompi_mpi_comm_world")),
            .comm_self = static_cast<Comm>(symbol("ompi_mpi_comm_self")),
            .comm_null = static_cast<Comm>(symbol("ompi_mpi_comm_null")),
            .byte = static_cast<Datatype>(symbol("ompi_mpi_byte")),
            .float32 = static_cast<Datatype>(symbol("ompi_mpi_float")),
            .float64 = static_cast<Datatype>(symbol("ompi_mpi_double")),
            .sum = static_cast<Op>(symbol("ompi_mpi_op_sum")),
            .info_null = static_cast<Info>(symbol("ompi_mpi_info_null")),
            .request_null = static_cast<Request>(symbol("ompi_request_null")),
            .errors_return = static_cast<Errhandler>(symbol("ompi_mpi_errors_return"))};
  }
};

// Handles are integers with fixed values.
struct MpichAbi {
  static constexpr std::string_view name = "MPICH";
  using Comm = int;
  using Datatype = int;
  using Op = int;
  using Info = int;
  using Request = int;
  using Message = int;
  using Errhandler = int;
  using Win = int;
  using Status = void;

  static constexpr int thread_serialized = 2;
  static constexpr int thread_multiple = 3;
  static constexpr int any_source = -2;
  static constexpr int any_tag = -1;
  static constexpr int undefined = -32766;
  // Error classes that mean that another rank has ended: aborted, failed, failed while pending, revoked.
  static constexpr std::array lost_peer = {76, 101, 102, 103};
  static constexpr int tag_ub = 0x64400001;
  static Status* status_ignore() noexcept { return reinterpret_cast<Status*>(std::uintptr_t{1}); }
  static const void* in_place() noexcept { return reinterpret_cast<const void*>(std::intptr_t{-1}); }

  template <class Symbol>
  static MpiHandles<MpichAbi> handles(const Symbol&) {
    return {.comm_world = 0x44000000,
            .comm_self = 0x44000001,
            .comm_null = 0x04000000,
            .byte = 0x4c00010d,
            .float32 = 0x4c00040a,
            .float64 = 0x4c00080b,
            .sum = 0x58000003,
            .info_null = 0x1c000000,
            .request_null = 0x2c000000,
            .errors_return = 0x54000001};
  }
};

// Handles are pointers with fixed values.
struct StandardAbi {
  static constexpr std::string_view name = "standard";
  using Comm = struct StandardComm*;
  using Datatype = struct StandardDatatype*;
  using Op = struct StandardOp*;
  using Info = struct StandardInfo*;
  using Request = struct StandardRequest*;
  using Message = struct StandardMessage*;
  using Errhandler = struct StandardErrhandler*;
  using Win = struct StandardWin*;
  using Status = void;

  static constexpr int thread_serialized = 2048;
  static constexpr int thread_multiple = 4096;
  static constexpr int any_source = -1;
  static constexpr int any_tag = -2;
  static constexpr int undefined = -32766;
  // Error classes that mean that another rank has ended: aborted, failed, failed while pending, revoked.
  static constexpr std::array lost_peer = {58};
  static constexpr int tag_ub = 501;
  static Status* status_ignore() noexcept { return nullptr; }
  static const void* in_place() noexcept { return reinterpret_cast<const void*>(std::uintptr_t{1}); }

  template <class Symbol>
  static MpiHandles<StandardAbi> handles(const Symbol&) {
    return {.comm_world = at<Comm>(0x101),
            .comm_self = at<Comm>(0x102),
            .comm_null = at<Comm>(0x100),
            .byte = at<Datatype>(0x247),
            .float32 = at<Datatype>(0x210),
            .float64 = at<Datatype>(0x214),
            .sum = at<Op>(0x21),
            .info_null = at<Info>(0x130),
            .request_null = at<Request>(0x180),
            .errors_return = at<Errhandler>(0x143)};
  }

 private:
  template <class Handle>
  static Handle at(std::uintptr_t value) noexcept {
    return reinterpret_cast<Handle>(value);
  }
};

}  // namespace onehop::detail
