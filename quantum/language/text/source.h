// The texts of a program and its included files, places in them, and errors about places.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace onehop::quantum::language {

// A byte of a text. Line and column are found only for errors.
struct Place {
  int file = 0;
  std::uint32_t byte = 0;
};

class Sources {
 public:
  // The program itself; `folder` is where its included files are.
  Sources(std::string name, std::string text, const std::string& folder);

  [[nodiscard]] std::string_view text(int file) const { return files_[static_cast<std::size_t>(file)]->text; }
  // Reads an included file that a statement at `place` names; returns its number. Throws BadInput for a file that does
  // not exist, lies outside the folder, or includes itself, and for too many files.
  int include(std::string_view path, Place place);
  // Adds a text of onehop itself; returns its number.
  int add(std::string name, std::string text);

  // Throws BadInput: file, line and column of the place, the message, and the line itself.
  [[noreturn]] void fail(Place place, const std::string& message) const;

 private:
  struct File {
    std::string name;
    std::string text;
    std::filesystem::path path;  // empty: the program
    int includer = -1;           // the file that includes it
  };
  std::filesystem::path folder_;
  std::vector<std::unique_ptr<File>> files_;
  std::size_t bytes_ = 0;  // of all included files
};

}  // namespace onehop::quantum::language
