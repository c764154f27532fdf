#include "onehop/gathered.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "onehop/error.h"

namespace onehop {
namespace {

std::vector<std::byte> bytes(const std::string& text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

std::string text(std::span<const std::byte> entry) {
  return {reinterpret_cast<const char*>(entry.data()), entry.size()};
}

std::vector<std::string> texts(const Gathered& all) {
  std::vector<std::string> list;
  for (const std::span<const std::byte> entry : all) list.push_back(text(entry));
  return list;
}

TEST(Gathered, HasTheContributionOfEveryRank) {
  const std::vector<std::string> expected{"", "one", "", "three"};
  std::vector<std::vector<std::byte>> contributions;
  for (const std::string& one : expected) contributions.push_back(bytes(one));
  const Gathered from_vectors = contributions;
  const Gathered from_block(bytes("onethree"), {0, 3, 3, 8});
  EXPECT_EQ(texts(from_vectors), expected);
  EXPECT_EQ(texts(from_block), expected);
  EXPECT_EQ(text(from_block[3]), "three");
  EXPECT_EQ(texts(Gathered{bytes("a")}), std::vector<std::string>{"a"});
  EXPECT_TRUE(Gathered().empty());
  EXPECT_TRUE(Gathered({}, {}).empty());
}

TEST(Gathered, CopiesShareTheirMemory) {
  const Gathered all{bytes("a long contribution"), bytes("another one")};
  const Gathered copy = all;  // NOLINT(performance-unnecessary-copy-initialization): this is what is tested
  EXPECT_EQ(copy[1].data(), all[1].data());
  const Gathered rest = all.without_first(2).without_first(3);
  EXPECT_EQ(rest[1].data(), all[1].data() + 5);
  EXPECT_EQ(texts(rest), (std::vector<std::string>{"g contribution", "er one"}));
  EXPECT_EQ(texts(all.without_first(11)), (std::vector<std::string>{"ribution", ""}));
}

TEST(Gathered, RefusesEndsThatDoNotFit) {
  EXPECT_THROW(Gathered(bytes("four"), {4, 3}), BadInput);
  EXPECT_THROW(Gathered(bytes("four"), {3}), BadInput);
  EXPECT_THROW(Gathered(bytes("four"), {2, 5}), BadInput);
  EXPECT_THROW(Gathered(bytes("four"), {}), BadInput);
  const Gathered all{bytes("abc"), bytes("a")};
  EXPECT_THROW(static_cast<void>(all.without_first(2)), BadInput);
  EXPECT_THROW(static_cast<void>(all.without_first(1).without_first(1)), BadInput);
}

}  // namespace
}  // namespace onehop
