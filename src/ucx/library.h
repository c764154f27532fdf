// Finds and loads UCX, and binds the functions that onehop calls.
#pragma once

#include <cstdarg>
#include <string>
#include <string_view>
#include <vector>

#include "src/ucx/abi.h"

namespace onehop::detail::ucx {

// One loaded UCX library. It is never unloaded.
// Returns 0 to keep the line from being printed, 1 to let UCX print it.
using LogHandler = int (*)(const char* file, unsigned line, const char* function, int level, const void* component,
                           const char* format, va_list arguments);

struct Library {
  std::string path;
  std::string version;  // "1.20.0"
  unsigned major = 0;
  unsigned minor = 0;

  // Takes a function that is called for each line that UCX would print; null where a version has none.
  void (*push_log)(LogHandler);
  void (*get_version)(unsigned*, unsigned*, unsigned*);
  const char* (*status_text)(Status);
  Status (*config_read)(const char*, const char*, Config**);
  Status (*config_modify)(Config*, const char*, const char*);
  void (*config_release)(Config*);
  Status (*init)(unsigned, unsigned, const ContextParams*, const Config*, Context**);
  void (*context_print)(const Context*, std::FILE*);
  Status (*worker_create)(Context*, const WorkerParams*, Worker**);
  void (*worker_destroy)(Worker*);
  Status (*worker_query)(Worker*, WorkerAttributes*);
  void (*worker_release_address)(Worker*, Address*);
  unsigned (*worker_progress)(Worker*);
  Status (*worker_fence)(Worker*);
  Status (*end_create)(Worker*, const EndParams*, RemoteEnd**);
  Status (*end_query)(RemoteEnd*, EndAttributes*);
  void* (*end_close)(RemoteEnd*, const RequestParams*);
  Status (*set_handler)(Worker*, const HandlerParams*);
  void* (*message_send)(RemoteEnd*, unsigned, const void*, std::size_t, const void*, std::size_t, const RequestParams*);
  void* (*put)(RemoteEnd*, const void*, std::size_t, std::uint64_t, RemoteKey*, const RequestParams*);
  Status (*memory_map)(Context*, const MapParams*, Memory**);
  Status (*memory_unmap)(Context*, Memory*);
  Status (*key_pack)(Context*, Memory*, void**, std::size_t*);
  void (*key_release)(void*);
  Status (*key_unpack)(RemoteEnd*, const void*, RemoteKey**);
  void (*key_destroy)(RemoteKey*);
  void (*request_free)(void*);
};

// Operations return null when they completed at once, a request, or a status below zero as an address.
[[nodiscard]] bool is_request(const void* returned) noexcept;
[[nodiscard]] Status status_of(const void* returned) noexcept;

// The library to use, searched in this order: in the process (an MPI may have loaded it), ONEHOP_UCX (a path, or
// "none"), beside the MPI library, in the packages of the Python environment, the system's search path. Null if there
// is none; `tried` receives the searched places. Throws BadInput if the process has two UCX libraries, or
// ONEHOP_UCX names another one than that in the process.
[[nodiscard]] const Library* find_library(std::vector<std::string>& tried);

}  // namespace onehop::detail::ucx
