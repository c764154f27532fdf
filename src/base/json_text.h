// Reads and writes JSON, with keys in the order in which they were set and readable lines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace onehop::detail {

using Json = nlohmann::ordered_json;

// Returns one line for indent < 0. Otherwise a value that does not fit in 100 characters is written on several lines,
// each level indented by `indent` more spaces. Throws BadInput if a string is not UTF-8.
[[nodiscard]] std::string json_text(const Json& json, int indent);

// Checks text that comes from outside and returns it without a mark of UTF-8. `what` names it in messages: "the
// schedule". Throws BadInput: with line, column and reason if it is not JSON or a number exceeds a double; with the
// path for a key that an object has twice, and for more than 64 keys in an object or 32 levels of brackets (no format
// of onehop has as many).
[[nodiscard]] std::string_view checked_json(std::string_view text, const std::string& what);

// The first `longest` bytes of a text in UTF-8, cut between characters and marked with "..." if there are more.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t longest);

}  // namespace onehop::detail
