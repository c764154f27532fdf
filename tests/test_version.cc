#include "onehop/version.h"

#include <gtest/gtest.h>

#include <regex>

TEST(Version, HasThreeNumbers) {
  EXPECT_TRUE(std::regex_match(onehop::version(), std::regex(R"(\d+\.\d+\.\d+)"))) << onehop::version();
}
