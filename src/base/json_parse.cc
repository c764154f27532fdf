// Checks untrusted JSON: every error is a BadInput that names the place. Time is proportional to the length of the
// text, and memory to its longest string.
#include <algorithm>
#include <cstdint>
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

// Follows the parser and keeps no values: only what is open, so that memory does not grow with the text.
class Checker : public nlohmann::json_sax<Json> {
 public:
  Checker(std::string_view text, const std::string& what) : text_(text), what_(what) {}

  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(number_integer_t) override { return count(); }
  bool number_unsigned(number_unsigned_t) override { return count(); }
  bool number_float(number_float_t, const string_t&) override { return count(); }
  bool string(string_t&) override { return count(); }
  bool binary(binary_t&) override { return false; }  // not in JSON text
  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    std::vector<std::string>& keys = open_.back().keys;
    if (std::ranges::find(keys, name) != keys.end()) {
      complain("every key once in an object", "\"" + shortened(name, 60) + "\" twice" + inside());
    }
    if (keys.size() == max_keys) {
      complain("at most " + std::to_string(max_keys) + " keys in an object",
               "one more, \"" + shortened(name, 60) + "\"" + inside());
    }
    keys.push_back(std::move(name));
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ...", which may quote most of the text.
    std::string_view reason = error.what();
    reason.remove_prefix(std::min(reason.find("] ") + 2, reason.size()));
    if (reason.starts_with("parse error at")) reason.remove_prefix(std::min(reason.find(": ") + 2, reason.size()));
    const std::string start = printable(reason.substr(0, longest_reason + 1));
    complain("JSON", "something else: " + place_of(text_, position) + ": " + shortened(start, longest_reason));
  }

 private:
  struct Level {
    bool is_object = false;
    std::size_t elements = 0;  // of an array
    std::vector<std::string> keys;
  };

  [[noreturn]] void complain(const std::string& expected, const std::string& found) const {
    throw BadInput(what_ + ": expected " + expected + ", found " + found);
  }

  // The path of the innermost open value, as " in rounds[0].transfers[3]".
  [[nodiscard]] std::string inside() const {
    std::string path;
    for (std::size_t level = 0; level + 1 < open_.size(); ++level) {
      const Level& outer = open_[level];
      if (outer.is_object) {
        path += (path.empty() ? "" : ".") + shortened(outer.keys.back(), 60);
      } else {
        path += "[" + std::to_string(outer.elements - 1) + "]";
      }
    }
    return path.empty() ? "" : " in " + shortened(path, longest_reason);
  }

  bool count() {
    if (!open_.empty()) ++open_.back().elements;
    return true;
  }

  bool open(bool is_object) {
    count();
    if (open_.size() == max_levels) {
      complain("at most " + std::to_string(max_levels) + " brackets in each other", "more" + inside());
    }
    open_.push_back({is_object, 0, {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& what_;
  std::vector<Level> open_;
};

}  // namespace

std::string_view checked_json(std::string_view text, const std::string& what) {
  Checker checker(text, what);
  (void)Json::sax_parse(text, &checker);
  // The parser skips the mark of UTF-8 at the beginning, which some editors write.
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return text.starts_with(mark) ? text.substr(mark.size()) : text;
}

std::string shortened(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return std::string(text);
  // Bytes 10xxxxxx continue a UTF-8 character.
  while (longest > 0 && (static_cast<unsigned char>(text[longest]) & 0xc0U) == 0x80) --longest;
  return std::string(text.substr(0, longest)) + "...";
}

}  // namespace onehop::detail
