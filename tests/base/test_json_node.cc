// Values are read from the text itself: what lies around them, and what looks like a bracket or an end, must not
// matter.
#include "src/base/json_node.h"
#include "tests/support/thrown.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace onehop::detail {
namespace {

using Integers = std::vector<std::int64_t>;

const std::string& name() {
  static const std::string text = "the text";
  return text;
}

TEST(JsonNode, ReadsValuesOfEveryKind) {
  const Node root(
      R"( { "list" : [ 1 , -2,3 ] , "text":"a]}\"\\", "number":-1.5e2,"yes":true ,"no":false,"none":null } )", name());
  EXPECT_EQ(root.at("list").integers(any_integer), (Integers{1, -2, 3}));
  EXPECT_EQ(root.at("text").text(), "a]}\"\\");
  EXPECT_EQ(root.at("number").number(), -150);
  EXPECT_TRUE(root.at("yes").boolean());
  EXPECT_FALSE(root.at("no").boolean());
  EXPECT_TRUE(root.at("none").is_null());
  EXPECT_FALSE(root.has("tex"));
}

TEST(JsonNode, FindsKeysThatAreWrittenWithEscapes) {
  const Node root(R"({"\u0072anks": 3, "a\"]": [[], {}, "\u00e9"]})", name());
  EXPECT_EQ(root.at("ranks").integer(0, 9), 3);
  std::vector<std::string> found;
  root.at("a\"]").for_each([&](const Node& node) {
    found.push_back(onehop::testing::message_of<BadInput>([&] { node.complain("nothing"); }));
  });
  EXPECT_EQ(found,
            (std::vector<std::string>{"a\"][0]: expected nothing, found []", "a\"][1]: expected nothing, found {}",
                                      "a\"][2]: expected nothing, found \"\\u00e9\""}));
}

TEST(JsonNode, EmptyListsAndObjectsHaveNoElements) {
  const Node root("{\"list\": [ \n ], \"object\": {\t}}", name());
  EXPECT_EQ(root.at("list").integers(0), Integers{});
  EXPECT_EQ(onehop::testing::message_of<BadInput>([&] { root.at("object").expect_keys({"a"}); }),
            "object: expected the key \"a\", found none");
}

TEST(JsonNode, IgnoresTheMarkOfUtf8AndWhatFollowsAZero) {
  EXPECT_EQ(Node("\xEF\xBB\xBF 7", name()).integer(0, 9), 7);
  EXPECT_EQ(Node(std::string_view("7\0]", 3), name()).integer(0, 9), 7);
  EXPECT_EQ(Node(std::string_view("[1]\0]", 5), name()).integers(0), Integers{1});
}

TEST(JsonNode, RefusesNumbersThatAreNoInteger) {
  for (const std::string number :
       {"1.0", "1e3", "9223372036854775808", "-9223372036854775809", "18446744073709551616"}) {
    EXPECT_EQ(onehop::testing::message_of<BadInput>(
                  [&] { (void)Node(number, name()).integer(any_integer, largest_integer); }),
              "the text: expected an integer from -9223372036854775808 to 9223372036854775807, found " + number);
  }
  EXPECT_EQ(Node("-9223372036854775808", name()).integer(any_integer, largest_integer), any_integer);
  EXPECT_EQ(Node("-0", name()).integer(0, 0), 0);
}

TEST(JsonNode, QuotesAValueWithoutItsSpace) {
  EXPECT_EQ(onehop::testing::message_of<BadInput>([] { (void)Node("{ \"a b\" :\n [1, 2] }", name()).text(); }),
            "the text: expected a string, found {\"a b\":[1,2]}");
  const std::string longer = "[\"" + std::string(100, 'x') + "\"]";
  EXPECT_EQ(onehop::testing::message_of<BadInput>([&] { (void)Node(longer, name()).text(); }),
            "the text: expected a string, found array [\"" + std::string(58, 'x') + "...");
}

TEST(JsonNode, QuotesTheBeginningOfATextThatIsNotJson) {
  const std::string brackets = "[" + std::string(100000, ' ') + "?";
  const std::string found = onehop::testing::message_of<BadInput>([&] { (void)Node(brackets, name()); });
  EXPECT_TRUE(found.starts_with("the text: expected JSON, found something else: line 1, column 100002: syntax error"))
      << found;
  EXPECT_LT(found.size(), 400U);
}

}  // namespace
}  // namespace onehop::detail
