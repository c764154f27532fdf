#include "onehop/version.h"

#include <gtest/gtest.h>

#include <cstdio>

TEST(Version, HasThreeNumbers) {
  int numbers[3];
  char rest = 0;
  EXPECT_EQ(std::sscanf(onehop::version(), "%d.%d.%d%c", &numbers[0], &numbers[1], &numbers[2], &rest), 3)
      << onehop::version();
}
