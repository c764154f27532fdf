#include "src/base/memory_left.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "onehop/error.h"
#include "src/base/env.h"
#include "src/base/text.h"

namespace onehop::detail {
namespace {

// "MemAvailable:   123 kB" -> bytes.
std::int64_t system_memory() {
  if (const auto pretended = env::number("ONEHOP_TEST_FREE_MEMORY")) return static_cast<std::int64_t>(*pretended);
  std::ifstream file("/proc/meminfo");
  for (std::string key, unit; file >> key;) {
    if (key == "MemAvailable:") {
      std::int64_t kib = 0;
      file >> kib;
      return kib * 1024;
    }
    std::getline(file, unit);
  }
  return no_memory_limit;
}

// Reads a number from a file of a control group. "max" and a missing file mean no limit.
std::int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? value : no_memory_limit;
}

// The names of files and values in a control group's folder, which differ between version 1 and 2.
struct GroupFiles {
  std::string folder;  // of the top group
  std::string limit;
  std::string throttle;  // a limit beyond which processes hardly run
  std::string usage;
  std::string cache;  // begins the names of the page cache in memory.stat, of the group with those below it
};

// Bytes of pages of files that are cached on behalf of a group. They count as used, but the system drops them as soon
// as the group needs the memory.
std::int64_t cached_in(const std::string& folder, const GroupFiles& files) {
  std::ifstream stat(folder + "/memory.stat");
  std::int64_t bytes = 0;
  std::int64_t value = 0;
  for (std::string name; stat >> name >> value;) {
    if (name == files.cache + "inactive_file" || name == files.cache + "active_file") bytes += value;
  }
  return bytes;
}

std::int64_t limit_in(const std::string& folder, const GroupFiles& files) {
  return std::min(number_in(folder + files.limit), number_in(folder + files.throttle));
}

// Bytes that a group has left.
std::int64_t left_in(const std::string& folder, const GroupFiles& files) {
  const std::int64_t limit = limit_in(folder, files);
  const std::int64_t used = number_in(folder + files.usage);
  if (limit == no_memory_limit || used == no_memory_limit) return no_memory_limit;
  return std::max<std::int64_t>(0, limit - std::max<std::int64_t>(0, used - cached_in(folder, files)));
}

// Whether `line`, "4:memory,hugetlb:/path", is of a group of version 1 that limits memory.
bool limits_memory(const std::string& line) {
  const std::size_t first = line.find(':');
  const std::size_t second = line.find(':', first + 1);
  if (second == std::string::npos) return false;
  return ("," + line.substr(first + 1, second - first - 1) + ",").find(",memory,") != std::string::npos;
}

// Finds the tightest of the control groups of this process and those above them: version 2 ("0::/path") and version 1
// ("4:memory:/path"). Inside a container the path may be the host's; then only the top exists, and it is the
// container's.
void add_control_groups(MemoryLeft& left, const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const bool second = line.rfind("0::", 0) == 0;
    if (!second && !limits_memory(line)) continue;
    const GroupFiles files =
        second ? GroupFiles{root + "/sys/fs/cgroup", "/memory.max", "/memory.high", "/memory.current", ""}
               : GroupFiles{root + "/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "", "/memory.usage_in_bytes",
                            "total_"};
    std::string group = line.substr(line.find(':', line.find(':') + 1) + 1);
    for (;;) {
      left.limit = std::min(left.limit, limit_in(files.folder + group, files));
      const std::int64_t bytes = left_in(files.folder + group, files);
      if (bytes < left.control_group) {
        left.control_group = bytes;
        left.control_group_id = std::hash<std::string>{}(group);
      }
      const std::size_t cut = group.rfind('/');
      if (cut == std::string::npos) break;
      group.erase(cut);
    }
  }
}

}  // namespace

bool memory_is_pretended() { return env::text("ONEHOP_TEST_FREE_MEMORY").has_value(); }

MemoryLeft memory_left(const std::string& root) {
  MemoryLeft left;
  left.system = system_memory();
  add_control_groups(left, root);
  return left;
}

std::int64_t available_memory() {
  const MemoryLeft left = memory_left();
  return std::min(left.system, left.control_group);
}

void check_room(const std::string& what, double number, const std::string& things, double bytes) {
  const double needed = number * bytes;
  if (needed < 1 << 24) return;  // reading what is left takes longer
  const std::int64_t left = available_memory();
  if (needed <= static_cast<double>(left)) return;
  throw BadInput(what + ": expected what fits into the " + base::bytes_text(left) +
                 " of memory that are left, found about " + base::number_text(number) + " " + things + ", which take " +
                 base::bytes_text(static_cast<std::int64_t>(std::min(needed, 4e18))) +
                 ": make the sizes smaller, or take one part (rank) at a time");
}

std::int64_t whole_memory() {
  if (memory_is_pretended()) return available_memory();
  return std::min(std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE), memory_left().limit);
}

}  // namespace onehop::detail
