// Reads values from JSON. Every error message names the place: "rounds[0].transfers[3].to.slice: expected ...".
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "src/base/json_text.h"

namespace onehop::detail {

inline constexpr std::int64_t any_integer = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t largest_integer = std::numeric_limits<std::int64_t>::max();

// A value of the text together with its path, so that every error can name the place. The path is a chain of nodes,
// each of which lives in the call that reads it; it becomes text only when an error is thrown.
class Node {
 public:
  // `name` is what messages call the whole text; both must outlive the node.
  Node(const Json& root, const std::string& name) : json_(root), name_(&name) {}

  [[noreturn]] void complain(const std::string& expected, const std::string& found) const {
    throw BadInput(path() + ": expected " + expected + ", found " + found);
  }

  [[noreturn]] void complain(const std::string& expected) const {
    constexpr std::size_t longest = 60;
    const std::string found = json_.dump(-1, ' ', false, Json::error_handler_t::replace);
    complain(expected,
             (found.size() > longest ? std::string(json_.type_name()) + " " : "") + shortened(found, longest));
  }

  void expect_keys(std::initializer_list<const char*> required,
                   std::initializer_list<const char*> optional = {}) const {
    if (!json_.is_object()) complain("an object");
    for (const auto& item : json_.items()) {
      const auto is_key = [&](const char* key) { return item.key() == key; };
      if (std::ranges::any_of(required, is_key) || std::ranges::any_of(optional, is_key)) continue;
      std::string known;
      for (const auto& keys : {required, optional}) {
        for (const char* key : keys) known += (known.empty() ? "" : ", ") + std::string(key);
      }
      complain("only the keys " + known, "\"" + shortened(item.key(), 60) + "\"");
    }
    for (const char* key : required) {
      if (!json_.contains(key)) complain("the key \"" + std::string(key) + "\"", "none");
    }
  }

  [[nodiscard]] bool has(const char* key) const { return json_.contains(key); }

  [[nodiscard]] Node at(const char* key) const { return {json_.at(key), this, key, 0}; }

  // Like `at`, but checks that the key exists; other keys are allowed.
  [[nodiscard]] Node required(const char* key) const {
    if (!json_.is_object()) complain("an object");
    if (!json_.contains(key)) complain("the key \"" + std::string(key) + "\"", "none");
    return at(key);
  }

  template <class Visit>
  void for_each(Visit&& visit) const {
    if (!json_.is_array()) complain("an array");
    for (std::size_t i = 0; i < json_.size(); ++i) visit(Node(json_[i], this, nullptr, i));
  }

  [[nodiscard]] bool is_null() const { return json_.is_null(); }

  [[nodiscard]] bool is_array() const { return json_.is_array(); }

  [[nodiscard]] bool boolean() const {
    if (!json_.is_boolean()) complain("true or false");
    return json_.get<bool>();
  }

  [[nodiscard]] std::string text() const {
    if (!json_.is_string()) complain("a string");
    return json_.get<std::string>();
  }

  [[nodiscard]] std::int64_t integer(std::int64_t smallest, std::int64_t largest) const {
    constexpr std::uint64_t limit = std::numeric_limits<std::int64_t>::max();
    const bool fits = json_.is_number_integer() && (!json_.is_number_unsigned() || json_.get<std::uint64_t>() <= limit);
    if (fits) {
      const auto value = json_.get<std::int64_t>();
      if (value >= smallest && value <= largest) return value;
    }
    complain("an integer from " + std::to_string(smallest) + " to " + std::to_string(largest));
  }

  [[nodiscard]] double number() const {
    if (!json_.is_number()) complain("a number");
    return json_.get<double>();
  }

  [[nodiscard]] int small_integer(int smallest) const {
    return static_cast<int>(integer(smallest, std::numeric_limits<int>::max()));
  }

  [[nodiscard]] std::vector<std::int64_t> integers(std::int64_t smallest) const {
    std::vector<std::int64_t> values;
    for_each(
        [&](const Node& node) { values.push_back(node.integer(smallest, std::numeric_limits<std::int64_t>::max())); });
    return values;
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
  Node(const Json& json, const Node* parent, const char* key, std::size_t index)
      : json_(json), parent_(parent), key_(key), index_(index) {}

  [[nodiscard]] std::string path() const {
    if (parent_ == nullptr) return *name_;
    const std::string before = parent_->parent_ == nullptr ? "" : parent_->path();
    if (key_ == nullptr) return before + "[" + std::to_string(index_) + "]";
    return before.empty() ? key_ : before + "." + key_;
  }

  const Json& json_;
  const std::string* name_ = nullptr;  // of the root
  const Node* parent_ = nullptr;
  const char* key_ = nullptr;  // in an object
  std::size_t index_ = 0;      // in an array
};

}  // namespace onehop::detail
