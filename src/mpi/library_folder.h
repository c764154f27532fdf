// Folders that libraries may be loaded from, and whether another user of the machine can have filled them.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace onehop::detail {

// A folder that may hold an MPI library. `distrust` is empty, or says why nothing in it is loaded. Root, this user and
// `owner` are trusted: the owner of the program beside which the folder is, or of a folder that the user names.
struct LibraryFolder {
  std::filesystem::path path;
  std::string distrust;
  std::optional<uid_t> owner;
};

// Appends the folders of libraries that belong to a program in `folder`: .../bin -> .../lib, .../lib64, ...; those that
// exist. Only root, this user and the owner of `folder` may be able to change them: beside a program in /tmp/mine is
// /tmp/lib, which any user can make.
void add_library_folders_beside(const std::filesystem::path& folder, std::vector<LibraryFolder>& folders);

// A folder that the user names, such as in a variable of Open MPI.
[[nodiscard]] LibraryFolder named_library_folder(const std::filesystem::path& path);

// Why the file of this name in a folder must not be loaded; empty if it may. The file and every symbolic link on the
// way to it must belong to a trusted user, or to the group that may write to their folder, and must lie in folders that
// not every user may write to.
[[nodiscard]] std::string distrust_of(const LibraryFolder& folder, const std::string& name);

// The first library of one of these names that may be loaded from the folders beside a program in `folder`, or "".
[[nodiscard]] std::string library_beside(const std::filesystem::path& folder, const std::vector<std::string>& names);

}  // namespace onehop::detail
