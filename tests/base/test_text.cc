#include "src/base/text.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cstdint>
#include <limits>
#include <string>

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

double read(const std::string& text, std::ptrdiff_t length) {
  char* end = nullptr;
  const double number = decimal_number(text.c_str(), &end);
  EXPECT_EQ(end - text.c_str(), length) << text;
  return number;
}

TEST(Text, NumbersAreRead) {
  EXPECT_EQ(read("0.5*Z0", 3), 0.5);
  EXPECT_EQ(read("2e-3", 4), 2e-3);
  EXPECT_EQ(read("1e400", 5), std::numeric_limits<double>::infinity());
}

TEST(Text, NumbersHaveAPointInEveryLocale) {
  const std::string before = std::setlocale(LC_NUMERIC, nullptr);
  const char* found = nullptr;
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "pt_BR.UTF-8"}) {
    if (found == nullptr) found = std::setlocale(LC_NUMERIC, name);
  }
  if (found == nullptr) GTEST_SKIP() << "needs a locale with a decimal comma: apt-get install locales-all";
  EXPECT_EQ(read("0.5", 3), 0.5);
  std::setlocale(LC_NUMERIC, before.c_str());
}

}  // namespace
}  // namespace onehop::base
