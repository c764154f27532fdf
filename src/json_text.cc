#include "json_text.h"

#include "onehop/error.h"

namespace onehop::detail {

namespace {

constexpr std::size_t line_length = 100;

// A line with a space behind every colon and comma.
void write_line(std::string& text, const Json& json) {
  if (!json.is_structured()) {
    text += json.dump();
    return;
  }
  text += json.is_array() ? '[' : '{';
  bool first = true;
  for (auto item = json.begin(); item != json.end(); ++item) {
    if (!first) text += ", ";
    first = false;
    if (json.is_object()) text += Json(item.key()).dump() + ": ";
    write_line(text, *item);
  }
  text += json.is_array() ? ']' : '}';
}

void write_lines(std::string& text, const Json& json, int indent, int depth) {
  const std::size_t begin = text.size();
  write_line(text, json);
  if (!json.is_structured() || json.empty() || text.size() - begin <= line_length) return;
  text.resize(begin);
  text += json.is_array() ? '[' : '{';
  bool first = true;
  for (auto item = json.begin(); item != json.end(); ++item) {
    text += first ? "\n" : ",\n";
    first = false;
    text.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(depth + 1), ' ');
    if (json.is_object()) text += Json(item.key()).dump() + ": ";
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
