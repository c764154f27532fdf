// JSON as this library reads and writes it: keys in the order in which they were set, lines that a person can read.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace onehop::detail {

using Json = nlohmann::ordered_json;

// One line for indent < 0; otherwise what does not fit on a line of 100 characters goes on several, each level
// `indent` spaces further in. Throws BadInput if a string is not UTF-8.
[[nodiscard]] std::string json_text(const Json& json, int indent);

// Reads text that comes from outside. `what` names it in messages: "the schedule". Throws BadInput with line, column
// and reason: text that is not JSON, numbers that no double holds, a key twice in an object (it would silently win over
// the first), more than 64 keys in an object or 32 levels of brackets (no format of onehop has as many).
[[nodiscard]] Json parse_json(std::string_view text, const std::string& what);

// The first `longest` bytes of a text in UTF-8, cut between characters and marked with "..." if there are more.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t longest);

}  // namespace onehop::detail
