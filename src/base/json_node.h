// Reads values from JSON. Every error message names the place: "rounds[0].transfers[3].to.slice: expected ...".
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "src/base/memory_left.h"

namespace onehop::detail {

inline constexpr std::int64_t any_integer = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t largest_integer = std::numeric_limits<std::int64_t>::max();

// Reads the values of a JSON array or object one after another. The text must have been checked.
class JsonItems {
 public:
  explicit JsonItems(std::string_view value) : rest_(value.substr(1)) {}

  // The text of the next key or value; empty behind the last one.
  [[nodiscard]] std::string_view next();

 private:
  std::string_view rest_;
};

// A value together with its path, so that every error can name the place. The value is a part of the text and nothing
// else: a tree of all values took up to 34 bytes for each byte of text. The path is a chain of nodes, each of which
// lives in the call that reads it; it becomes text only when an error is thrown.
class Node {
 public:
  // Checks the text (see `checked_json`). `name` is what messages call it; both must outlive the node.
  Node(std::string_view text, const std::string& name);

  [[noreturn]] void complain(const std::string& expected, const std::string& found) const;
  // Quotes the value.
  [[noreturn]] void complain(const std::string& expected) const;

  void expect_keys(std::initializer_list<std::string_view> required,
                   std::initializer_list<std::string_view> optional = {}) const;

  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }

  // The value of a key that exists.
  [[nodiscard]] Node at(const char* key) const { return {*find(key), this, key, 0}; }

  // Like `at`, but checks that the key exists; other keys are allowed.
  [[nodiscard]] Node required(const char* key) const;

  template <class Visit>
  void for_each(Visit&& visit) const {
    if (!is_array()) complain("an array");
    JsonItems items(value_);
    std::size_t index = 0;
    for (std::string_view item = items.next(); !item.empty(); item = items.next()) {
      visit(Node(item, this, nullptr, index++));
    }
  }

  // Returns read(element) of each element of an array. Takes memory for as many as there are, and no more.
  template <class Read>
  [[nodiscard]] auto list(Read&& read) const {
    std::vector<std::invoke_result_t<Read&, const Node&>> values;
    const std::size_t count = elements();
    if (count * sizeof values[0] > 1 << 24) check_room(path(), static_cast<double>(count), "values", sizeof values[0]);
    values.reserve(count);
    for_each([&](const Node& node) { values.push_back(read(node)); });
    return values;
  }

  [[nodiscard]] bool is_null() const { return value_.front() == 'n'; }

  [[nodiscard]] bool is_array() const { return value_.front() == '['; }

  [[nodiscard]] bool boolean() const;

  [[nodiscard]] std::string text() const;

  [[nodiscard]] std::int64_t integer(std::int64_t smallest, std::int64_t largest) const;

  [[nodiscard]] double number() const;

  [[nodiscard]] int small_integer(int smallest) const {
    return static_cast<int>(integer(smallest, std::numeric_limits<int>::max()));
  }

  [[nodiscard]] std::vector<std::int64_t> integers(std::int64_t smallest) const {
    return list([&](const Node& node) { return node.integer(smallest, largest_integer); });
  }

  // Calls read() and prefixes the message of a BadInput with the path of this value.
  template <class Read>
  [[nodiscard]] auto read(Read&& read) const {
    try {
      return read();
    } catch (const BadInput& error) {
      throw BadInput(path() + ": " + error.what());
    }
  }

 private:
  struct Member {
    std::string key;
    std::string_view value;
  };

  Node(std::string_view value, const Node* parent, const char* key, std::size_t index);

  [[nodiscard]] const std::string_view* find(std::string_view key) const;
  [[nodiscard]] std::size_t elements() const;
  [[nodiscard]] std::string path() const;

  std::string_view value_;
  std::vector<Member> members_;        // of an object, at most as many as `checked_json` allows
  const std::string* name_ = nullptr;  // of the root
  const Node* parent_ = nullptr;
  const char* key_ = nullptr;  // in an object
  std::size_t index_ = 0;      // in an array
};

}  // namespace onehop::detail
