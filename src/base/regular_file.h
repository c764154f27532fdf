// Reads a small file whose name comes from the user and may be of any kind.
#pragma once

#include <optional>
#include <string>

namespace onehop::detail {

struct FileText {
  std::optional<std::string> text;  // none if there is a problem
  std::string problem;
  bool is_missing = false;
};

// Reads a regular file of at most `longest` bytes. Never waits: a FIFO, socket, device or folder is reported as a
// problem.
[[nodiscard]] FileText read_regular_file(const std::string& path, std::size_t longest);

}  // namespace onehop::detail
