#include "src/base/json_text.h"

#include "onehop/error.h"

namespace onehop::detail {

namespace {

constexpr std::size_t line_length = 100;

// Keys are chosen by onehop and contain nothing that needs an escape.
void write_key(std::string& text, const std::string& key) { text.append(1, '"').append(key).append("\": "); }

// Appends `json` as one line with a space behind every colon and comma. Returns false if the text becomes longer than
// `longest`; the line is then incomplete.
bool write_line(std::string& text, const Json& json, std::size_t longest) {
  if (!json.is_structured()) {
    text += json.is_number_integer() ? std::to_string(json.get<std::int64_t>()) : json.dump();
    return text.size() <= longest;
  }
  text += json.is_array() ? '[' : '{';
  bool first = true;
  for (auto item = json.begin(); item != json.end(); ++item) {
    if (!first) text += ", ";
    first = false;
    if (json.is_object()) write_key(text, item.key());
    if (!write_line(text, *item, longest)) return false;
  }
  text += json.is_array() ? ']' : '}';
  return text.size() <= longest;
}

void write_lines(std::string& text, const Json& json, int indent, int depth) {
  const std::size_t begin = text.size();
  const std::size_t longest = json.is_structured() ? begin + line_length : std::string::npos;
  if (write_line(text, json, longest)) return;
  text.resize(begin);
  text += json.is_array() ? '[' : '{';
  bool first = true;
  for (auto item = json.begin(); item != json.end(); ++item) {
    text += first ? "\n" : ",\n";
    first = false;
    text.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(depth + 1), ' ');
    if (json.is_object()) write_key(text, item.key());
    write_lines(text, *item, indent, depth + 1);
  }
  text += '\n';
  text.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(depth), ' ');
  text += json.is_array() ? ']' : '}';
}

}  // namespace

std::string json_text(const Json& json, int indent) {
  try {
    if (indent < 0) return json.dump();
    std::string text;
    write_lines(text, json, indent, 0);
    return text;
  } catch (const Json::type_error& error) {
    throw BadInput(std::string("JSON: expected names in UTF-8, found one that is not (") + error.what() + ")");
  }
}

}  // namespace onehop::detail
