#include "src/channel/store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "onehop/tuning.h"

namespace onehop::detail {
namespace {

constexpr StoreKind kinds[] = {StoreKind::plain, StoreKind::prefetch, StoreKind::demote, StoreKind::nontemporal};
constexpr std::byte untouched{0xee};

std::vector<std::byte> numbered(std::size_t n) {
  std::vector<std::byte> bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

// Every kind copies exactly the given bytes, for any alignment of source and destination.
TEST(Store, CopiesExactly) {
  const std::vector<std::byte> source = numbered(1400);
  for (const StoreKind kind : kinds) {
    for (const std::size_t n : {0, 1, 15, 16, 63, 64, 65, 200, 1024, 1300}) {
      for (const std::size_t shift : {0, 1, 8, 63}) {
        std::vector<std::byte> to(1600, untouched);
        std::byte* const begin = to.data() + 64 + shift;
        store_function(kind)(begin, source.data() + 3, n);
        EXPECT_TRUE(std::equal(begin, begin + n, source.data() + 3)) << to_string(kind) << ' ' << n << ' ' << shift;
        EXPECT_EQ(std::count(to.data(), begin, untouched), begin - to.data());
        EXPECT_EQ(std::count(begin + n, to.data() + to.size(), untouched), to.data() + to.size() - (begin + n));
      }
    }
  }
}

TEST(Store, PiecesMakeAWhole) {
  const std::vector<std::byte> source = numbered(1000);
  for (const StoreKind kind : kinds) {
    std::vector<std::byte> to(source.size(), untouched);
    std::size_t at = 0;
    for (const std::size_t n : {100, 28, 512, 1, 359}) {
      piece_function(kind)(to.data() + at, source.data() + at, n);
      at += n;
    }
    finish_stores(kind);
    EXPECT_EQ(to, source);
  }
}

}  // namespace
}  // namespace onehop::detail
