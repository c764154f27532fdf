#include "src/mpi/local_ports.h"

#include <stdlib.h>

#include <charconv>
#include <fstream>
#include <optional>
#include <string>

#include "src/base/env.h"

namespace onehop::detail {
namespace {

constexpr const char* transports = "OMPI_MCA_btl";

// The process number of the launcher in the name that Open MPI 5 gives a launch, "prterun-HOST-123@1".
std::optional<int> launcher_in_name(const std::string& name) {
  const std::size_t end = name.rfind('@');
  const std::size_t begin = name.rfind('-', end);
  if (end == std::string::npos || begin == std::string::npos) return std::nullopt;
  int process = 0;
  const char* const last = name.data() + end;
  const auto [at, error] = std::from_chars(name.data() + begin + 1, last, process);
  if (error != std::errc{} || at != last || process <= 0) return std::nullopt;
  return process;
}

// Whether a process is seen here under this number and is a launcher of Open MPI. A container has numbers of its own.
bool is_launcher(int process) {
  std::string name;
  std::ifstream("/proc/" + std::to_string(process) + "/comm") >> name;
  return name.starts_with("prte") || name.starts_with("mpiexec") || name.starts_with("mpirun");
}

bool all_ranks_are_here() {
  const auto ranks = env::text("OMPI_COMM_WORLD_SIZE");
  if (!ranks || ranks != env::text("OMPI_COMM_WORLD_LOCAL_SIZE")) return false;
  const std::optional<int> launcher = launcher_in_name(env::text("PMIX_NAMESPACE").value_or(""));
  return launcher && is_launcher(*launcher);
}

}  // namespace

// Open MPI reads the variable when it starts. It is taken away afterwards, because programs that a rank starts inherit
// the environment.
NoLocalPorts::NoLocalPorts() : set_(!env::text(transports) && all_ranks_are_here()) {
  if (set_) setenv(transports, "^tcp", 1);
}

NoLocalPorts::~NoLocalPorts() {
  if (set_) unsetenv(transports);
}

}  // namespace onehop::detail
