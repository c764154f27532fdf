// Parses untrusted JSON: every error is a BadInput that names the place, and time and memory are at most proportional
// to the length of the text.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "src/base/json_text.h"

namespace onehop::detail {

namespace {

// Later code may recurse over a value; this limit protects its stack.
constexpr std::size_t max_levels = 32;
// Look-up of a key compares with all keys of the object.
constexpr std::size_t max_keys = 64;
constexpr std::size_t longest_reason = 240;

// The position of a byte as "line 3, column 7", both counted from 1.
std::string place_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte);
  const auto lines = std::ranges::count(before, '\n');
  const std::size_t last = before.rfind('\n');
  const std::size_t column = last == std::string_view::npos ? before.size() : before.size() - last - 1;
  return "line " + std::to_string(lines + 1) + ", column " + std::to_string(std::max<std::size_t>(column, 1));
}

// The parser quotes the offending bytes, which may be part of a character.
std::string printable(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string made;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      made += c;
    } else {
      made.append("<0x").append(1, digits[byte >> 4U]).append(1, digits[byte & 15U]).append(">");
    }
  }
  return made;
}

class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, const std::string& what) : text_(text), what_(what) {}

  [[nodiscard]] Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // not in JSON text
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    const Json& object = *open_.back();
    if (object.contains(name))
      complain("every key once in an object", "\"" + shortened(name, 60) + "\" twice" + inside());
    if (object.size() == max_keys) {
      complain("at most " + std::to_string(max_keys) + " keys in an object",
               "one more, \"" + shortened(name, 60) + "\"" + inside());
    }
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    std::string reason = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    reason.erase(0, std::min(reason.find("] ") + 2, reason.size()));
    if (reason.starts_with("parse error at")) reason.erase(0, std::min(reason.find(": ") + 2, reason.size()));
    complain("JSON",
             "something else: " + place_of(text_, position) + ": " + shortened(printable(reason), longest_reason));
  }

 private:
  [[noreturn]] void complain(const std::string& expected, const std::string& found) const {
    throw BadInput(what_ + ": expected " + expected + ", found " + found);
  }

  // The path of the value being read, as " in rounds[0].transfers[3]".
  [[nodiscard]] std::string inside() const {
    std::string path;
    for (std::size_t level = 0; level + 1 < open_.size(); ++level) {
      const Json& value = *open_[level];
      if (value.is_array()) {
        path += "[" + std::to_string(value.size() - 1) + "]";
      } else {
        path += (path.empty() ? "" : ".") + shortened(std::prev(value.end()).key(), 60);
      }
    }
    return path.empty() ? "" : " in " + shortened(path, longest_reason);
  }

  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    Json& into = *open_.back();
    if (!into.is_array()) return into[key_] = std::move(value);
    into.push_back(std::move(value));
    return into.back();
  }

  template <class Value>
  bool put(Value&& value) {
    (void)place(Json(std::forward<Value>(value)));
    return true;
  }

  bool open(Json value) {
    if (open_.size() == max_levels) {
      complain("at most " + std::to_string(max_levels) + " brackets in each other", "more" + inside());
    }
    // Only the innermost value grows, so the pointers to the outer ones stay valid.
    open_.push_back(&place(std::move(value)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& what_;
  Json root_;
  std::vector<Json*> open_;
  std::string key_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& what) {
  Builder builder(text, what);
  (void)Json::sax_parse(text, &builder);
  return builder.take();
}

std::string shortened(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return std::string(text);
  // Bytes 10xxxxxx continue a UTF-8 character.
  while (longest > 0 && (static_cast<unsigned char>(text[longest]) & 0xc0U) == 0x80) --longest;
  return std::string(text.substr(0, longest)) + "...";
}

}  // namespace onehop::detail
