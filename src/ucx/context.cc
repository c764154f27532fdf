#include "src/ucx/context.h"

#include <stdlib.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <sstream>
#include <vector>

#include "onehop/error.h"
#include "src/mpi/shipped_library.h"
#include "src/ucx/interfaces.h"

namespace onehop::detail::ucx {
namespace {

// What UCX prints about its resources: lines such as
//   # resource 3 : md 1 dev 3 flags -- tcp/eth0
std::vector<std::string> resources(const Library& library, const Context* context) {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* const memory = ::open_memstream(&text, &bytes);
  if (memory == nullptr) return {};
  library.context_print(context, memory);
  std::fclose(memory);
  std::istringstream lines(std::string(text, bytes));
  std::free(text);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("resource") == std::string::npos) continue;
    const auto blank = line.find_last_of(' ');
    const std::string name = blank == std::string::npos ? line : line.substr(blank + 1);
    if (name.find('/') != std::string::npos && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

// Transports whose hardware writes into the memory of the other machine.
bool writes_remotely(const std::string& resource) {
  for (const char* name : {"rc_", "dc_", "gga_", "srd", "ugni"}) {
    if (resource.starts_with(name)) return true;
  }
  return false;
}

bool is_network(const std::string& resource) {
  return writes_remotely(resource) || resource.starts_with("tcp/") || resource.starts_with("ud_");
}

const ProcessContext* start(const Library& library, const std::string& device) {
  if (const char* const wanted = std::getenv("UCX_NET_DEVICES"); wanted != nullptr && *wanted != '^') {
    check_devices("UCX_NET_DEVICES", wanted);  // UCX ignores what it does not know
  }
  Config* config = nullptr;
  check(library, library.config_read(nullptr, nullptr, &config), "reading the variables UCX_...");
  if (!device.empty()) {
    check(library, library.config_modify(config, "NET_DEVICES", device.c_str()), "choosing the interface " + device);
  }
  // Otherwise UCX waits inside connect(), two minutes if a firewall drops the packets, and no limit of onehop counts.
  if (std::getenv("UCX_TCP_CONN_NB") == nullptr) {
    static_cast<void>(library.config_modify(config, "TCP_CONN_NB", "y"));
  }
  ContextParams params;
  params.field_mask = ContextParams::has_features | ContextParams::has_mt_workers_shared;
  params.features = feature_messages | feature_rma;
  params.mt_workers_shared = 1;
  Context* context = nullptr;
  const Status status = library.init(api_major, api_minor, &params, config, &context);
  library.config_release(config);
  check(library, status, "starting UCX (do UCX_TLS and UCX_NET_DEVICES name transports and devices that exist?)");
  auto* made = new ProcessContext{library, context, true, false, {}};  // kept to the end of the process
  for (const std::string& resource : resources(library, context)) {
    made->writes_remotely = made->writes_remotely || writes_remotely(resource);
    made->only_tcp = made->only_tcp && (!is_network(resource) || resource.starts_with("tcp/"));
    if (is_network(resource)) made->networks += (made->networks.empty() ? "" : ", ") + resource;
  }
  return made;
}

}  // namespace

void check(const Library& library, Status status, const std::string& step) {
  if (static_cast<int>(status) >= 0) return;
  throw Error(step + " failed in UCX " + library.version + " (" + library.path + "): " + library.status_text(status));
}

const ProcessContext& process_context(const std::string& device) {
  static std::mutex mutex;
  static std::map<std::string, const ProcessContext*> made;
  const std::lock_guard guard(mutex);
  if (const auto found = made.find(device); found != made.end()) return *found->second;
  std::vector<std::string> tried;
  const Library* const library = find_library(tried);
  if (library == nullptr) {
    throw Error(
        "no UCX library was found; set ONEHOP_UCX=/path/to/libucp.so.0, or install one (`pip install libucx-cu12`)"
        ". Looked at:" +
        joined(tried));
  }
  return *made.emplace(device, start(*library, device)).first->second;
}

}  // namespace onehop::detail::ucx
