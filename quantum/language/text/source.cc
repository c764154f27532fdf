#include "quantum/language/text/source.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "onehop/error.h"
#include "src/base/text.h"

namespace onehop::quantum::language {
namespace {

constexpr std::size_t most_files = 1000;
constexpr std::size_t most_bytes = std::size_t{16} << 20;
constexpr int deepest = 64;
constexpr std::size_t longest_line = 80;

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

void remove_mark(std::string& text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
}

// At most `longest_line` bytes of a line around a byte of it.
std::string excerpt(std::string_view line, std::size_t byte) {
  std::size_t begin = byte > longest_line / 2 && line.size() > longest_line ? byte - longest_line / 2 : 0;
  while (begin > 0 && continues(line[begin])) --begin;
  std::size_t end = std::min(line.size(), begin + longest_line);
  while (end < line.size() && continues(line[end])) ++end;
  std::string shown(line.substr(begin, end - begin));
  std::ranges::replace_if(shown, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  const std::size_t first = shown.find_first_not_of(' ');
  shown.erase(0, first == std::string::npos ? shown.size() : first);
  return (begin > 0 ? "..." : "") + shown + (end < line.size() ? "..." : "");
}

}  // namespace

Sources::Sources(std::string name, std::string text, const std::string& folder) : folder_(folder) {
  remove_mark(text);
  files_.push_back(std::make_unique<File>(File{std::move(name), std::move(text), {}, -1}));
}

int Sources::include(std::string_view path, Place place) {
  const std::string name(path);
  if (name.find('\0') != std::string::npos) fail(place, "expected the name of a file, found one with a null byte");
  std::error_code error;
  const std::filesystem::path root = std::filesystem::canonical(folder_, error);
  const std::filesystem::path asked = folder_ / name;
  std::filesystem::path found = std::filesystem::canonical(asked, error);
  if (error || !std::filesystem::is_regular_file(found, error)) {
    fail(place, "expected a file '" + name + "' in the folder of the program, found none");
  }
  const auto differs = std::mismatch(root.begin(), root.end(), found.begin(), found.end());
  if (differs.first != root.end()) {
    fail(place, "expected an included file inside the folder of the program, found '" + name +
                    "' outside of it; copy the file there");
  }
  int depth = 0;
  for (int file = place.file; file >= 0; file = files_[static_cast<std::size_t>(file)]->includer) {
    const File& one = *files_[static_cast<std::size_t>(file)];
    const bool is_program = one.path.empty() && std::filesystem::equivalent(one.name, found, error);
    if ((!one.path.empty() && one.path == found) || is_program) fail(place, name + " includes itself");
    if (++depth > deepest) fail(place, "expected at most " + std::to_string(deepest) + " nested includes, found more");
  }
  std::ifstream stream(found, std::ios::binary);
  std::string text(std::min<std::size_t>(std::filesystem::file_size(found, error), most_bytes - bytes_) + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  if (stream.bad()) fail(place, "cannot read the included file '" + name + "'");
  bytes_ += text.size();
  if (files_.size() > most_files || bytes_ > most_bytes) {
    fail(place, "expected at most " + std::to_string(most_files) + " included files of " +
                    base::bytes_text(static_cast<std::int64_t>(most_bytes)) + " together, found more");
  }
  remove_mark(text);
  files_.push_back(std::make_unique<File>(File{asked.string(), std::move(text), std::move(found), place.file}));
  return static_cast<int>(files_.size()) - 1;
}

int Sources::add(std::string name, std::string text) {
  files_.push_back(std::make_unique<File>(File{std::move(name), std::move(text), {}, -1}));
  return static_cast<int>(files_.size()) - 1;
}

void Sources::fail(Place place, const std::string& message) const {
  const File& file = *files_[static_cast<std::size_t>(place.file)];
  const std::string_view all = file.text;
  const std::size_t at = std::min<std::size_t>(place.byte, all.size());
  const std::size_t before = at == 0 ? std::string_view::npos : all.rfind('\n', at - 1);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  const auto lines = std::count(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(begin), '\n') + 1;
  const std::string_view left = all.substr(begin, at - begin);
  const auto column = std::count_if(left.begin(), left.end(), [](char c) { return !continues(c); }) + 1;
  const std::string_view line = all.substr(begin, all.find('\n', at) - begin);
  const std::string shown = excerpt(line, at - begin);
  throw BadInput(file.name + ":" + std::to_string(lines) + ":" + std::to_string(column) + ": " + message +
                 (shown.empty() ? "" : " (in: " + shown + ")"));
}

}  // namespace onehop::quantum::language
