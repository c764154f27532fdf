// Which folders an MPI library is loaded from: none that another user of the machine can fill.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "src/mpi/launcher.h"

namespace onehop {
namespace {

std::vector<detail::LibraryFolder> library_folders_beside(const std::filesystem::path& folder) {
  std::vector<detail::LibraryFolder> folders;
  detail::add_library_folders_beside(folder, folders);
  return folders;
}

namespace fs = std::filesystem;

constexpr uid_t other_user = 65534;

class MpiFolders : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "onehop-test-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = fs::canonical(name);
    fs::create_directories(root_ / "mine");
    fs::create_directories(root_ / "lib");
    ASSERT_EQ(chmod((root_ / "lib").c_str(), 0755), 0);
  }
  void TearDown() override { fs::remove_all(root_); }

  [[nodiscard]] std::string distrust() const {
    const auto found = library_folders_beside(root_ / "mine");
    EXPECT_EQ(found.size(), 1U);
    if (found.empty()) return "nothing is found";
    EXPECT_EQ(found[0].path, root_ / "lib");
    return found[0].distrust;
  }

  fs::path root_;
};

TEST_F(MpiFolders, OwnOnesAreTrusted) { EXPECT_EQ(distrust(), ""); }

TEST_F(MpiFolders, ThoseThatEverybodyMayFillAreNot) {
  ASSERT_EQ(chmod((root_ / "lib").c_str(), 01777), 0);
  EXPECT_EQ(distrust(), "every user may write there");
}

TEST_F(MpiFolders, ThoseOfAnotherUserAreNotUnlessTheProgramIsHis) {
  if (geteuid() != 0) GTEST_SKIP() << "acting as another user needs root";
  ASSERT_EQ(chown((root_ / "lib").c_str(), other_user, other_user), 0);
  EXPECT_EQ(distrust(), "it belongs to user 65534");
  ASSERT_EQ(chown((root_ / "mine").c_str(), other_user, other_user), 0);
  EXPECT_EQ(distrust(), "");
}

TEST_F(MpiFolders, LinksAreFollowedBeforeTheCheck) {
  fs::remove(root_ / "lib");
  fs::create_directories(root_ / "elsewhere");
  ASSERT_EQ(chmod((root_ / "elsewhere").c_str(), 0777), 0);
  fs::create_symlink(root_ / "elsewhere", root_ / "lib");
  const auto found = library_folders_beside(root_ / "mine");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].path, root_ / "elsewhere");
  EXPECT_EQ(found[0].distrust, "every user may write there");
}

TEST_F(MpiFolders, LinksToThemMustNotBeAnotherUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "acting as another user needs root";
  const fs::path link = root_ / "lib";
  fs::remove(link);
  fs::create_directories(root_ / "outer/elsewhere");
  fs::create_symlink("outer/elsewhere", link);
  const auto distrust = [&] { return library_folders_beside(root_ / "mine").at(0).distrust; };
  EXPECT_EQ(distrust(), "");
  ASSERT_EQ(lchown(link.c_str(), other_user, other_user), 0);
  EXPECT_EQ(distrust(), link.string() + " belongs to user 65534");
  ASSERT_EQ(lchown(link.c_str(), 0, 0), 0);
  // A folder on the way, whose owner may exchange what is in it. In a sticky one nobody else can.
  const fs::path outer = root_ / "outer";
  ASSERT_EQ(chown(outer.c_str(), other_user, other_user), 0);
  EXPECT_EQ(distrust(), outer.string() + " belongs to user 65534");
  ASSERT_EQ(chown(outer.c_str(), 0, 0), 0);
  ASSERT_EQ(chmod(outer.c_str(), 0777), 0);
  EXPECT_EQ(distrust(), "every user may write to " + outer.string());
  ASSERT_EQ(chmod(outer.c_str(), 01777), 0);
  EXPECT_EQ(distrust(), "");
}

// The library that would be loaded for a program in root_/mine, relative to root_; "" if none would be.
std::string chosen(const fs::path& root) {
  const std::string found = detail::library_beside(root / "mine", {"libmpi.so.40", "libucp.so.0", "libpmix.so.2"});
  return found.empty() ? found : fs::path(found).lexically_relative(root).string();
}

TEST_F(MpiFolders, FilesOfAnotherUserAreNotLoaded) {
  if (geteuid() != 0) GTEST_SKIP() << "acting as another user needs root";
  for (const char* name : {"libmpi.so.40", "libucp.so.0", "libpmix.so.2"}) {
    const fs::path file = root_ / "lib" / name;
    std::ofstream(file) << "a library";
    EXPECT_EQ(chosen(root_), fs::path("lib") / name);
    ASSERT_EQ(chown(file.c_str(), other_user, other_user), 0);
    EXPECT_EQ(chosen(root_), "");
    const auto beside = library_folders_beside(root_ / "mine");
    ASSERT_EQ(beside.size(), 1U);
    EXPECT_EQ(detail::distrust_of(beside[0], name), file.string() + " belongs to user 65534");
    // As the program belongs to the same user, its own libraries may.
    ASSERT_EQ(chown((root_ / "mine").c_str(), other_user, other_user), 0);
    EXPECT_EQ(chosen(root_), fs::path("lib") / name);
    ASSERT_EQ(chown((root_ / "mine").c_str(), 0, 0), 0);
    // Members of a group that may write to the folder are trusted, too, and other users are not.
    ASSERT_EQ(chmod((root_ / "lib").c_str(), 0775), 0);
    EXPECT_EQ(chosen(root_), "");
    ASSERT_EQ(chown(file.c_str(), other_user, 0), 0);
    EXPECT_EQ(chosen(root_), fs::path("lib") / name);
    ASSERT_EQ(chmod((root_ / "lib").c_str(), 0755), 0);
    EXPECT_EQ(chosen(root_), "");
    fs::remove(file);
  }
}

TEST_F(MpiFolders, FilesThatEverybodyMayWriteAreNotLoaded) {
  const fs::path file = root_ / "lib/libmpi.so.40";
  std::ofstream(file) << "a library";
  ASSERT_EQ(chmod(file.c_str(), 0666), 0);
  EXPECT_EQ(chosen(root_), "");
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  EXPECT_EQ(chosen(root_), "lib/libmpi.so.40");
}

TEST_F(MpiFolders, LinksAreLoadedOnlyIfNobodyElseCanChangeWhatTheyLeadTo) {
  if (geteuid() != 0) GTEST_SKIP() << "acting as another user needs root";
  const fs::path link = root_ / "lib/libmpi.so.40";
  const fs::path elsewhere = root_ / "elsewhere";
  const fs::path target = elsewhere / "libmpi.so.40.1";
  fs::create_directories(elsewhere);
  std::ofstream(target) << "a library";
  fs::create_symlink("../elsewhere/libmpi.so.40.1", link);
  const std::string loaded = "lib/libmpi.so.40";
  EXPECT_EQ(chosen(root_), loaded);
  // The link itself, its target, and the folder of its target.
  ASSERT_EQ(lchown(link.c_str(), other_user, other_user), 0);
  EXPECT_EQ(chosen(root_), "");
  ASSERT_EQ(lchown(link.c_str(), 0, 0), 0);
  for (const fs::path& one : {target, elsewhere}) {
    ASSERT_EQ(chown(one.c_str(), other_user, other_user), 0);
    EXPECT_EQ(chosen(root_), "") << one;
    ASSERT_EQ(chown(one.c_str(), 0, 0), 0);
    const mode_t before = one == target ? 0644 : 0755;
    ASSERT_EQ(chmod(one.c_str(), 0777), 0);
    EXPECT_EQ(chosen(root_), "") << one;
    ASSERT_EQ(chmod(one.c_str(), before), 0);
    EXPECT_EQ(chosen(root_), loaded);
  }
  // A link on the way, in a folder of another user: a file or a folder.
  const fs::path between = root_ / "between";
  fs::create_directories(between);
  fs::create_symlink(target, between / "file");
  fs::create_symlink(elsewhere, between / "folder");
  for (const char* step : {"file", "folder/libmpi.so.40.1"}) {
    fs::remove(link);
    fs::create_symlink(between / step, link);
    EXPECT_EQ(chosen(root_), loaded);
    ASSERT_EQ(chown(between.c_str(), other_user, other_user), 0);
    EXPECT_EQ(chosen(root_), "") << step;
    ASSERT_EQ(chown(between.c_str(), 0, 0), 0);
  }
  // A circle is no library.
  fs::remove(between / "file");
  fs::remove(link);
  fs::create_symlink("libmpi.so.40", link);
  EXPECT_EQ(chosen(root_), "");
  EXPECT_EQ(detail::distrust_of(library_folders_beside(root_ / "mine")[0], "libmpi.so.40"), "its links form a circle");
}

// Whether the folder beside an mpiexec is among those of the launcher, for a process of root whose parent is that
// mpiexec and runs as `user`.
bool finds_folder_of_parent(const fs::path& bin, uid_t user) {
  std::array<int, 2> execs{};
  std::array<int, 2> answer{};
  EXPECT_EQ(pipe2(execs.data(), O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(answer.data(), O_CLOEXEC), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    if (fork() == 0) {
      close(execs[1]);
      char byte = 0;
      static_cast<void>(!read(execs[0], &byte, 1));  // returns once the parent has become mpiexec
      setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
      const auto found = detail::mpi_launcher_folders();
      const bool any =
          std::ranges::any_of(found, [&](const auto& one) { return one.path == bin.parent_path() / "lib"; });
      static_cast<void>(!write(answer[1], any ? "y" : "n", 1));
      _exit(0);
    }
    if (setuid(user) == 0) execl((bin / "mpiexec").c_str(), "mpiexec", "60", nullptr);
    _exit(1);
  }
  for (const int end : {execs[0], execs[1], answer[1]}) close(end);
  char word = 0;
  EXPECT_EQ(read(answer[0], &word, 1), 1);
  close(answer[0]);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  return word == 'y';
}

// Whether programs run under an emulator (qemu-user). The system then names the emulator as the program of every other
// process.
bool under_emulator() {
  const fs::path own = fs::read_symlink("/proc/self/exe");
  const fs::path of_this = "/proc/" + std::to_string(getpid()) + "/exe";
  const pid_t child = fork();
  if (child == 0) {
    std::error_code error;
    _exit(fs::read_symlink(of_this, error) == own ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status != 0;
}

// As under `sudo -E`: a process of root whose parent is a program of somebody else that calls itself mpiexec.
TEST_F(MpiFolders, ThoseOfALauncherOfAnotherUserAreNotSearched) {
  if (geteuid() != 0) GTEST_SKIP() << "acting as another user needs root";
  if (under_emulator()) GTEST_SKIP() << "other processes run the emulator, not mpiexec";
  ASSERT_EQ(chmod(root_.c_str(), 0755), 0);
  fs::create_directories(root_ / "bin");
  fs::copy_file("/bin/sleep", root_ / "bin/mpiexec");
  for (const char* folder : {"bin", "lib"}) ASSERT_EQ(chown((root_ / folder).c_str(), other_user, other_user), 0);
  EXPECT_TRUE(finds_folder_of_parent(root_ / "bin", 0));
  EXPECT_FALSE(finds_folder_of_parent(root_ / "bin", other_user));
}

}  // namespace
}  // namespace onehop
