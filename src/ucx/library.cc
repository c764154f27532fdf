#include "src/ucx/library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "onehop/error.h"
#include "src/base/env.h"
#include "src/mpi/shipped_library.h"

namespace onehop::detail::ucx {

namespace fs = std::filesystem;

bool is_request(const void* returned) noexcept {
  constexpr std::uintptr_t first_error = static_cast<std::uintptr_t>(-100);
  const auto value = reinterpret_cast<std::uintptr_t>(returned);
  return value != 0 && value < first_error;
}

Status status_of(const void* returned) noexcept {
  if (is_request(returned)) return Status::in_progress;
  return static_cast<Status>(static_cast<std::int8_t>(reinterpret_cast<std::intptr_t>(returned)));
}

namespace {

constexpr ShippedLibrary sought = {.file_name = "libucp.so.0", .variable = "ONEHOP_UCX", .called = "UCX"};
// Older versions do not copy the headers of messages (RequestParams::copy_header). 1.18, 1.20 and 1.22 were tried.
constexpr unsigned least_minor = 18;

// Binds all functions. Empty if that succeeds, else the name of a function that is missing.
std::string bind_all(Library& to, void* handle) {
  FunctionBinder binder(handle);
  const auto bind = [&binder](auto*& function, const char* name) { binder.bind(function, name); };
  bind(to.get_version, "ucp_get_version");
  bind(to.status_text, "ucs_status_string");
  bind(to.config_read, "ucp_config_read");
  bind(to.config_modify, "ucp_config_modify");
  bind(to.config_release, "ucp_config_release");
  bind(to.init, "ucp_init_version");
  bind(to.context_print, "ucp_context_print_info");
  bind(to.worker_create, "ucp_worker_create");
  bind(to.worker_destroy, "ucp_worker_destroy");
  bind(to.worker_query, "ucp_worker_query");
  bind(to.worker_release_address, "ucp_worker_release_address");
  bind(to.worker_progress, "ucp_worker_progress");
  bind(to.worker_fence, "ucp_worker_fence");
  bind(to.end_create, "ucp_ep_create");
  bind(to.end_query, "ucp_ep_query");
  bind(to.end_close, "ucp_ep_close_nbx");
  bind(to.set_handler, "ucp_worker_set_am_recv_handler");
  bind(to.message_send, "ucp_am_send_nbx");
  bind(to.put, "ucp_put_nbx");
  bind(to.memory_map, "ucp_mem_map");
  bind(to.memory_unmap, "ucp_mem_unmap");
  bind(to.key_pack, "ucp_rkey_pack");
  bind(to.key_release, "ucp_rkey_buffer_release");
  bind(to.key_unpack, "ucp_ep_rkey_unpack");
  bind(to.key_destroy, "ucp_rkey_destroy");
  bind(to.request_free, "ucp_request_free");
  return binder.missing();
}

// Loads the library of this path or name. Null and a reason if that fails.
std::unique_ptr<Library> load(const std::string& name, std::string& reason) {
  void* const handle = open_library(name, reason);
  if (handle == nullptr) return nullptr;
  auto library = std::make_unique<Library>();
  const std::string missing = bind_all(*library, handle);
  if (!missing.empty()) {
    ::dlclose(handle);
    reason = name + ": has no " + missing + "; a newer UCX is expected";
    return nullptr;
  }
  library->push_log = reinterpret_cast<decltype(library->push_log)>(::dlsym(handle, "ucs_log_push_handler"));
  library->path = path_of_function(reinterpret_cast<void*>(library->get_version), name);
  unsigned release = 0;
  library->get_version(&library->major, &library->minor, &release);
  library->version =
      std::to_string(library->major) + "." + std::to_string(library->minor) + "." + std::to_string(release);
  if (library->major != 1 || library->minor < least_minor) {
    reason = library->path + ": is UCX " + library->version + ", and 1." + std::to_string(least_minor) +
             " or newer is expected, of major version 1";
    return nullptr;  // it stays in the process, as nobody can tell what unloading it does
  }
  return library;
}

int note_name(dl_phdr_info* info, std::size_t, void* names) {
  const fs::path path(info->dlpi_name);
  if (path.filename().string().starts_with("libucp")) {
    static_cast<std::vector<std::string>*>(names)->push_back(path.string());
  }
  return 0;
}

// The UCX libraries that are mapped, each once.
std::vector<std::string> in_process() {
  std::vector<std::string> names;
  ::dl_iterate_phdr(&note_name, &names);
  return names;
}

// Errors come back as a status, on which onehop falls back or throws. UCX would print them, too.
int keep_quiet(const char* /*file*/, unsigned /*line*/, const char* /*function*/, int level, const void* /*component*/,
               const char* /*format*/, va_list /*arguments*/) {
  constexpr int fatal = 0;
  return level > fatal ? 0 : 1;
}

std::unique_ptr<Library> search(std::vector<std::string>& tried) {
  if (switched_off(sought, tried)) return nullptr;
  const auto wanted = env::text(sought.variable);
  const std::vector<std::string> mapped = in_process();
  if (mapped.size() > 1) {
    throw BadInput("this process has two UCX libraries, " + mapped[0] + " and " + mapped[1] +
                   ", which disturb each other; make the program load one of them only");
  }
  std::string reason;
  if (!mapped.empty()) {
    std::error_code error;
    if (wanted && !fs::equivalent(*wanted, mapped[0], error)) {
      throw BadInput("ONEHOP_UCX names " + *wanted + ", but this process already has another UCX library, " +
                     mapped[0] + " (an MPI library may have loaded it); unset ONEHOP_UCX or let it name that one");
    }
    if (auto library = load(mapped[0], reason)) return library;
    tried.push_back(reason + "; this process has loaded it already, as MPI libraries do, and cannot use another one");
    return nullptr;
  }
  tried.emplace_back("this process: no UCX is loaded");
  auto library = load_shipped_library_with(sought, load, tried);
  if (library && library->push_log != nullptr && std::getenv("UCX_LOG_LEVEL") == nullptr) library->push_log(keep_quiet);
  return library;
}

}  // namespace

const Library* find_library(std::vector<std::string>& tried) { return find_once<Library>(search, tried); }

}  // namespace onehop::detail::ucx
