// Which folders an MPI library is loaded from: none that another user of the machine can fill.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "src/mpi/launcher.h"

namespace onehop {
namespace {

namespace fs = std::filesystem;
using detail::library_folders_beside;

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

}  // namespace
}  // namespace onehop
