#include "src/mpi/library_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <deque>
#include <system_error>

namespace onehop::detail {
namespace {

namespace fs = std::filesystem;

constexpr int most_links = 40;  // as many as Linux follows

bool is_trusted(uid_t user, const std::optional<uid_t>& owner) {
  return user == 0 || user == ::geteuid() || user == owner;
}

std::string of_user(uid_t user) { return "belongs to user " + std::to_string(user); }

// Why a file, link or folder in `folder` may have been put there by somebody who is not trusted.
std::string doubt(const fs::path& path, const struct stat& found, const struct stat& folder,
                  const std::optional<uid_t>& owner) {
  const bool of_group = (folder.st_mode & S_IWGRP) != 0 && found.st_gid == folder.st_gid;
  // In a sticky folder every user may add folders, but not exchange those of others.
  const auto is_open = [is_folder = S_ISDIR(found.st_mode)](const struct stat& one) {
    return !S_ISLNK(one.st_mode) && (one.st_mode & S_IWOTH) != 0 && !(is_folder && (one.st_mode & S_ISVTX) != 0);
  };
  if (!is_trusted(found.st_uid, owner) && !of_group) return path.string() + " " + of_user(found.st_uid);
  if (is_open(found)) return "every user may write to " + path.string();
  if (!is_trusted(folder.st_uid, owner)) return path.parent_path().string() + " " + of_user(folder.st_uid);
  if (is_open(folder)) return "every user may write to " + path.parent_path().string();
  return {};
}

// Why a step of the way from `reached`, a folder without links, may have been put there by somebody who is not trusted.
std::string doubt_on_the_way(fs::path reached, const fs::path& way, const std::optional<uid_t>& owner) {
  std::error_code error;
  std::deque<fs::path> steps(way.begin(), way.end());
  int links = 0;
  while (!steps.empty()) {
    const fs::path path = (reached / steps.front()).lexically_normal();
    steps.pop_front();
    struct stat found{};
    struct stat around{};
    if (::lstat(path.c_str(), &found) != 0 || ::stat(path.parent_path().c_str(), &around) != 0) {
      return path.string() + " cannot be examined";
    }
    if (std::string why = doubt(path, found, around, owner); !why.empty()) return why;
    if (!S_ISLNK(found.st_mode)) {
      reached = path;
      continue;
    }
    if (++links > most_links) return "its links form a circle";
    const fs::path target = fs::read_symlink(path, error);
    if (error) return path.string() + " cannot be examined: " + error.message();
    if (target.is_absolute()) reached = "/";
    steps.insert(steps.begin(), target.begin(), target.end());
  }
  return {};
}

}  // namespace

void add_library_folders_beside(const fs::path& folder, std::vector<LibraryFolder>& folders) {
  struct stat program{};
  const bool exists = ::stat(folder.c_str(), &program) == 0;
  const std::optional<uid_t> owner = exists ? std::optional(program.st_uid) : std::nullopt;
  std::error_code error;
  const fs::path around = fs::canonical(folder.parent_path(), error);
  if (error) return;
  for (const char* name : {"lib", "lib64", "lib/release", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"}) {
    // Without symbolic links, which somebody else might change after the check.
    const fs::path real = fs::canonical(around / name, error);
    struct stat found{};
    if (error || ::stat(real.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) continue;
    LibraryFolder& one = folders.emplace_back(LibraryFolder{real, doubt_on_the_way(around, name, owner), owner});
    if (!is_trusted(found.st_uid, owner)) one.distrust = "it " + of_user(found.st_uid);
    if ((found.st_mode & S_IWOTH) != 0) one.distrust = "every user may write there";
  }
}

LibraryFolder named_library_folder(const fs::path& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return {path, {}, std::nullopt};
  return {path, {}, found.st_uid};
}

std::string distrust_of(const LibraryFolder& folder, const std::string& name) {
  if (!folder.distrust.empty()) return folder.distrust;
  std::error_code error;
  // The folder itself has been judged, or the user has named it.
  const fs::path reached = fs::canonical(folder.path, error);
  if (error) return "its folder cannot be examined: " + error.message();
  return doubt_on_the_way(reached, name, folder.owner);
}

std::string library_beside(const fs::path& folder, const std::vector<std::string>& names) {
  std::error_code error;
  std::vector<LibraryFolder> folders;
  add_library_folders_beside(folder, folders);
  for (const LibraryFolder& beside : folders) {
    for (const std::string& name : names) {
      if (fs::exists(beside.path / name, error) && distrust_of(beside, name).empty()) return beside.path / name;
    }
  }
  return {};
}

}  // namespace onehop::detail
