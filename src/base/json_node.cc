#include "src/base/json_node.h"

#include <algorithm>
#include <charconv>

#include "src/base/json_text.h"

namespace onehop::detail {

// All of this trusts the text, which `checked_json` has read.
namespace {

constexpr std::string_view space = " \t\n\r";

// The number of bytes of the string at the beginning of the text.
std::size_t string_length(std::string_view text) {
  std::size_t at = 1;
  while (text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return at + 1;
}

// The number of bytes of the value at the beginning of the text.
std::size_t value_length(std::string_view text) {
  if (text.front() == '"') return string_length(text);
  if (text.front() != '[' && text.front() != '{') {
    // Behind the outermost value there may be a zero, which ends the text for the parser.
    return std::min(text.find_first_of(std::string_view(" \t\n\r,]}\0", 8)), text.size());
  }
  std::size_t at = 0;
  for (int depth = 0;; ++at) {
    at = text.find_first_of("\"[]{}", at);
    if (text[at] == '"') {
      at += string_length(text.substr(at)) - 1;
    } else if (text[at] == '[' || text[at] == '{') {
      ++depth;
    } else if (--depth == 0) {
      return at + 1;
    }
  }
}

std::string_view first_value(std::string_view text) {
  text.remove_prefix(text.find_first_not_of(space));
  return text.substr(0, value_length(text));
}

std::string unescaped(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) return std::string(text.substr(1, text.size() - 2));
  return Json::parse(text).get<std::string>();
}

const char* type_name(std::string_view value) {
  switch (value.front()) {
    case '{':
      return "object";
    case '[':
      return "array";
    case '"':
      return "string";
    case 'n':
      return "null";
    case 't':
    case 'f':
      return "boolean";
    default:
      return "number";
  }
}

// The value without the space between its parts, cut behind a little more than `longest` bytes.
std::string compact(std::string_view value, std::size_t longest) {
  std::string made;
  for (std::size_t at = 0; at < value.size() && made.size() <= longest;) {
    const std::size_t length = value[at] == '"' ? string_length(value.substr(at)) : 1;
    if (space.find(value[at]) == std::string_view::npos) made += value.substr(at, std::min(length, longest + 4));
    at += length;
  }
  return made;
}

}  // namespace

std::string_view JsonItems::next() {
  const std::size_t begin = rest_.find_first_not_of(" \t\n\r,:");
  if (rest_[begin] == ']' || rest_[begin] == '}') return {};
  rest_.remove_prefix(begin);
  const std::string_view item = rest_.substr(0, value_length(rest_));
  rest_.remove_prefix(item.size());
  return item;
}

Node::Node(std::string_view text, const std::string& name)
    : Node(first_value(checked_json(text, name)), nullptr, nullptr, 0) {
  name_ = &name;
}

Node::Node(std::string_view value, const Node* parent, const char* key, std::size_t index)
    : value_(value), parent_(parent), key_(key), index_(index) {
  if (value.front() != '{') return;
  JsonItems items(value);
  for (std::string_view name = items.next(); !name.empty(); name = items.next()) {
    members_.push_back({unescaped(name), items.next()});
  }
}

void Node::complain(const std::string& expected, const std::string& found) const {
  throw BadInput(path() + ": expected " + expected + ", found " + found);
}

void Node::complain(const std::string& expected) const {
  constexpr std::size_t longest = 60;
  const std::string found = compact(value_, longest);
  complain(expected, (found.size() > longest ? std::string(type_name(value_)) + " " : "") + shortened(found, longest));
}

void Node::expect_keys(std::initializer_list<std::string_view> required,
                       std::initializer_list<std::string_view> optional) const {
  if (value_.front() != '{') complain("an object");
  const auto contains = [](const auto& keys, std::string_view key) {
    return std::ranges::find(keys, key) != keys.end();
  };
  for (const Member& member : members_) {
    if (contains(required, member.key) || contains(optional, member.key)) continue;
    std::string known;
    for (const auto& keys : {required, optional}) {
      for (const std::string_view key : keys) known.append(known.empty() ? "" : ", ").append(key);
    }
    complain("only the keys " + known, "\"" + shortened(member.key, 60) + "\"");
  }
  for (const std::string_view key : required) {
    if (!has(key)) complain("the key \"" + std::string(key) + "\"", "none");
  }
}

Node Node::required(const char* key) const {
  if (value_.front() != '{') complain("an object");
  if (!has(key)) complain("the key \"" + std::string(key) + "\"", "none");
  return at(key);
}

bool Node::boolean() const {
  if (value_ != "true" && value_ != "false") complain("true or false");
  return value_ == "true";
}

std::string Node::text() const {
  if (value_.front() != '"') complain("a string");
  return unescaped(value_);
}

std::int64_t Node::integer(std::int64_t smallest, std::int64_t largest) const {
  std::int64_t value = 0;
  const char* const begin = &value_.front();
  const char* const end = begin + value_.size();
  const auto [stop, problem] = std::from_chars(begin, end, value);
  // A number with a fraction or an exponent stops before its end.
  if (problem == std::errc{} && stop == end && value >= smallest && value <= largest) return value;
  complain("an integer from " + std::to_string(smallest) + " to " + std::to_string(largest));
}

double Node::number() const {
  if (std::string_view("-0123456789").find(value_.front()) == std::string_view::npos) complain("a number");
  return Json::parse(value_).get<double>();
}

const std::string_view* Node::find(std::string_view key) const {
  const auto found = std::ranges::find(members_, key, &Member::key);
  return found == members_.end() ? nullptr : &found->value;
}

std::size_t Node::elements() const {
  if (!is_array()) complain("an array");
  std::size_t count = 0;
  for (JsonItems items(value_); !items.next().empty();) ++count;
  return count;
}

std::string Node::path() const {
  if (parent_ == nullptr) return *name_;
  const std::string before = parent_->parent_ == nullptr ? "" : parent_->path();
  if (key_ == nullptr) return before + "[" + std::to_string(index_) + "]";
  return before.empty() ? key_ : before + "." + key_;
}

}  // namespace onehop::detail
