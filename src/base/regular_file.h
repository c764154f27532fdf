// Reads a small file whose name comes from the user and which may be anything.
#pragma once

#include <optional>
#include <string>

namespace onehop::detail {

struct FileText {
  std::optional<std::string> text;  // none: there is a problem
  std::string problem;
  bool is_missing = false;
};

// The whole of a regular file of at most `longest` bytes. Never waits: FIFOs, sockets, devices and folders are
// problems.
[[nodiscard]] FileText read_regular_file(const std::string& path, std::size_t longest);

}  // namespace onehop::detail
