// Makes the file of a run, in the JSON format that chrome://tracing and Perfetto read, from the files of its ranks.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "onehop/error.h"
#include "src/base/json_text.h"
#include "src/base/trace.h"

namespace onehop::trace {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, kinds> categories{"wait", "plan", "collective", "pass", "exchange", "solver"};

// What a rank has written; less if it was killed.
struct RankTrace {
  detail::FileHead head;
  std::map<std::uint32_t, std::string> names;
  std::vector<std::pair<std::uint32_t, std::vector<Event>>> events;  // by thread
  std::vector<std::int64_t> sent;

  [[nodiscard]] std::int64_t shift() const { return static_cast<std::int64_t>(head.clock_ahead * 1e9); }
};

// Opens a regular file of this user; other users may have put anything there. Fails for everything else.
std::ifstream open_own(const fs::path& file) {
  std::ifstream stream;
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat found{};
  const bool is_own = descriptor >= 0 && ::fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode) &&
                      (found.st_uid == ::geteuid() || found.st_uid == 0);
  if (is_own) stream.open("/proc/self/fd/" + std::to_string(descriptor), std::ios::binary);
  if (descriptor >= 0) ::close(descriptor);
  if (!is_own) stream.setstate(std::ios::failbit);
  return stream;
}

std::optional<detail::FileHead> read_head(std::ifstream& stream) {
  constexpr int most_ranks = 1 << 20;
  constexpr double furthest = 1e9;  // seconds between two clocks
  detail::FileHead head;
  if (!stream.read(reinterpret_cast<char*>(&head), sizeof head) || head.mark != detail::FileHead::magic) return {};
  if (head.ranks > most_ranks || head.rank < 0 || head.rank >= head.ranks) return {};
  if (!(std::abs(head.clock_ahead) < furthest)) return {};
  return head;
}

std::optional<RankTrace> read(const fs::path& file) {
  std::ifstream stream = open_own(file);
  const auto head = read_head(stream);
  if (!head) return std::nullopt;
  RankTrace found;
  found.head = *head;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  detail::Block block;
  while (stream.read(reinterpret_cast<char*>(&block), sizeof block)) {
    if (error || block.bytes > size) break;
    std::string bytes(block.bytes, '\0');
    if (!stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) break;
    if (block.kind == detail::Block::Kind::name) {
      found.names[block.number] = bytes;
    } else if (block.kind == detail::Block::Kind::events) {
      std::vector<Event> events(bytes.size() / sizeof(Event));
      if (!events.empty()) std::memcpy(events.data(), bytes.data(), events.size() * sizeof(Event));
      found.events.emplace_back(block.number, std::move(events));
    } else {
      found.sent.resize(bytes.size() / sizeof(std::int64_t));
      if (!found.sent.empty()) std::memcpy(found.sent.data(), bytes.data(), found.sent.size() * sizeof(std::int64_t));
    }
  }
  return found;
}

std::string quoted(const std::string& text) {
  using onehop::detail::Json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void write_rank(std::FILE* to, const RankTrace& rank, std::int64_t origin) {
  const int number = rank.head.rank;
  const std::string machine(rank.head.machine, ::strnlen(rank.head.machine, sizeof rank.head.machine));
  std::fprintf(to, "{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":%s}},\n", number,
               quoted("rank " + std::to_string(number) + " on " + machine).c_str());
  std::fprintf(to,
               "{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%d}},\n",
               number, number);
  std::fprintf(to, "{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"name\":\"onehop_sent\",\"args\":{\"bytes\":[", number);
  for (std::size_t peer = 0; peer < rank.sent.size(); ++peer) {
    std::fprintf(to, "%s%lld", peer == 0 ? "" : ",", static_cast<long long>(rank.sent[peer]));
  }
  std::fprintf(to, "]}},\n");
  std::map<std::uint32_t, std::string> names;
  for (const auto& [id, name] : rank.names) names[id] = quoted(name);
  for (const auto& [thread, events] : rank.events) {
    for (const Event& event : events) {
      const auto name = names.find(event.name);
      const auto kind = static_cast<std::size_t>(event.kind);
      if (name == names.end() || kind >= categories.size()) continue;
      std::fprintf(to,
                   "{\"ph\":\"X\",\"pid\":%d,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"%s\",\"name\":%s,\"args\":{",
                   number, thread, 1e-3 * static_cast<double>(event.begin - rank.shift() - origin),
                   1e-3 * static_cast<double>(event.end - event.begin), categories[kind], name->second.c_str());
      const char* comma = "";
      if (event.peer >= 0) {
        std::fprintf(to, "\"rank\":%d", event.peer);
        comma = ",";
      }
      if (event.bytes > 0) {
        std::fprintf(to, "%s\"bytes\":%lld", comma, static_cast<long long>(event.bytes));
        comma = ",";
      }
      if (event.count > 0) std::fprintf(to, "%s\"count\":%u", comma, event.count);
      std::fprintf(to, "}},\n");
    }
  }
}

// `name` is that of the file for messages.
void write(const std::string& file, const std::string& name, const std::vector<RankTrace>& ranks) {
  std::int64_t origin = std::numeric_limits<std::int64_t>::max();
  for (const RankTrace& rank : ranks) {
    for (const auto& [thread, events] : rank.events) {
      for (const Event& event : events) origin = std::min(origin, event.begin - rank.shift());
    }
  }
  const std::string unfinished = file + ".unfinished-" + std::to_string(::getpid());
  const int descriptor = detail::new_file(unfinished);
  std::FILE* const to = descriptor < 0 ? nullptr : ::fdopen(descriptor, "w");
  bool fails = to == nullptr;
  if (!fails) {
    std::fprintf(to, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"ranks\":%d},\"traceEvents\":[\n",
                 ranks.front().head.ranks);
    for (const RankTrace& rank : ranks) write_rank(to, rank, origin);
    std::fprintf(to, "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"onehop_trace\",\"args\":{}}]}\n");
    fails = std::ferror(to) != 0;
    fails = std::fclose(to) != 0 || fails || std::rename(unfinished.c_str(), file.c_str()) != 0;
  }
  if (!fails) return;
  const int error = errno;
  static_cast<void>(std::remove(unfinished.c_str()));
  throw BadInput("cannot write the trace " + name + ": " + std::strerror(error) +
                 "; the files of its ranks stay, of which `onehop trace " + name + "` makes it");
}

}  // namespace

int merge(const std::string& file, bool complete) {
  return detail::merge(onehop::detail::OutputFolder(fs::path(file).parent_path()), file, complete);
}

int detail::merge(const onehop::detail::OutputFolder& folder, const std::string& name, bool complete) {
  const std::string file = folder.file(fs::path(name).filename());
  std::vector<fs::path> parts;
  int expected = 0;
  for (int rank = 0; rank == 0 || rank < expected; ++rank) {
    for (const bool ended : {true, false}) {
      const fs::path part = detail::file_of_rank(file, rank, ended);
      std::ifstream stream = open_own(part);
      if (!stream) continue;
      if (expected == 0) {
        if (const auto head = read_head(stream)) expected = head->ranks;
      }
      if (complete && !ended) return 0;
      parts.push_back(part);
      break;
    }
    if (complete && static_cast<int>(parts.size()) <= rank) return 0;
  }
  if (parts.empty()) return 0;
  // Of processes that end at the same time, the one that takes the first file makes the trace.
  const std::string taken = file + ".merging";
  if (std::rename(parts.front().c_str(), taken.c_str()) != 0) return 0;
  const fs::path first = std::exchange(parts.front(), fs::path(taken));
  std::vector<RankTrace> ranks;
  for (const fs::path& part : parts) {
    if (auto found = read(part)) ranks.push_back(std::move(*found));
  }
  if (ranks.empty()) {  // not files of this version, which stay
    static_cast<void>(std::rename(taken.c_str(), first.c_str()));
    return 0;
  }
  try {
    write(file, name, ranks);
  } catch (...) {
    static_cast<void>(std::rename(taken.c_str(), first.c_str()));
    throw;
  }
  for (const fs::path& part : parts) static_cast<void>(std::remove(part.c_str()));
  return static_cast<int>(ranks.size());
}

}  // namespace onehop::trace
