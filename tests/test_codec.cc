#include "onehop/codec.h"

#include <gtest/gtest.h>

#include "onehop/error.h"
#include "support/two_to.h"

namespace onehop {
namespace {

using testing::two_to;

TEST(Codec, NamesGoBothWays) {
  EXPECT_EQ(to_string(Codec::raw), "raw");
  EXPECT_EQ(codec_from_string("raw"), Codec::raw);
}

TEST(Codec, AnUnknownNameListsTheKnownOnes) {
  try {
    (void)codec_from_string("zip");
    FAIL() << "expected BadInput";
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(), "expected a codec (one of: raw), found \"zip\"");
  }
}

TEST(Codec, RawSendsElementsAsTheyLie) {
  EXPECT_EQ(wire_bytes(Codec::raw, 0, 8), 0);
  EXPECT_EQ(wire_bytes(Codec::raw, 7, 24), 168);
  EXPECT_EQ(wire_bytes(Codec::raw, two_to(32), 16), two_to(36));
  EXPECT_THROW((void)wire_bytes(Codec::raw, two_to(61), 8), BadInput);
}

}  // namespace
}  // namespace onehop
