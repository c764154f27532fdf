#include "src/base/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace onehop::base {
namespace {

TEST(Text, BytesAreInTheLargestUnit) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text((std::int64_t{1} << 30) + 1), "1 GiB");
  EXPECT_EQ(bytes_text(std::int64_t{3} << 49), "1.5 PiB");
  EXPECT_EQ(bytes_text(std::numeric_limits<std::int64_t>::max()), "8 EiB");
}

TEST(Text, SmallNumbersKeepTheirDigits) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(-1e-9), "-1e-09");
  EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "inf");
}

TEST(Text, NounsAreCounted) {
  EXPECT_EQ(counted(1, "match"), "1 match");
  EXPECT_EQ(counted(0, "rank"), "0 ranks");
  EXPECT_EQ(counted(3, "match"), "3 matches");
  EXPECT_EQ(counted(2, "entry"), "2 entries");
  EXPECT_EQ(counted(2, "array"), "2 arrays");
}

}  // namespace
}  // namespace onehop::base
