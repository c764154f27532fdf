// JSON as this library writes it: keys in the order in which they were set, lines that a person can read.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace onehop::detail {

using Json = nlohmann::ordered_json;

// One line for indent < 0; otherwise what does not fit on a line of 100 characters goes on several, each level
// `indent` spaces further in. Throws BadInput if a string is not UTF-8.
[[nodiscard]] std::string json_text(const Json& json, int indent);

}  // namespace onehop::detail
