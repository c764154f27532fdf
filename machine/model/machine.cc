#include "onehop/machine/machine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "machine/model/fields.h"
#include "onehop/error.h"
#include "onehop/schedule.h"
#include "src/base/names.h"
#include "src/base/text.h"

namespace onehop {
namespace {

using detail::FigureField;
using detail::Need;
using detail::TableField;

constexpr detail::NamedValue<Basis> bases[] = {
    {Basis::published, "published"}, {Basis::measured, "measured"}, {Basis::guessed, "guessed"}};
constexpr detail::NamedValue<Routing> routings[] = {{Routing::all_to_all, "all_to_all"},
                                                    {Routing::mesh, "mesh"},
                                                    {Routing::fat_tree, "fat_tree"},
                                                    {Routing::torus, "torus"},
                                                    {Routing::dragonfly, "dragonfly"}};
constexpr std::int64_t max_processors = std::int64_t{1} << 31;
constexpr std::size_t max_extents = 8;
constexpr std::size_t max_levels = 8;
constexpr std::int64_t max_links = 4096;
constexpr std::size_t max_points = 64;
constexpr std::int64_t max_numbered = std::int64_t{1} << 20;

[[noreturn]] void complain(const std::string& path, const std::string& expected, const std::string& found) {
  throw BadInput(path + ": expected " + expected + ", found " + found);
}

std::string text(double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.6g", value);
  return digits;
}

void check_figure(const Figure& figure, const std::string& path, Need need) {
  if (need == Need::optional && figure == Figure{}) return;
  const bool good = need == Need::positive ? figure.value > 0 : figure.value >= 0;
  if (!good || !std::isfinite(figure.value)) {
    complain(path, need == Need::positive ? "a finite number above 0" : "a finite number of at least 0",
             text(figure.value));
  }
  if (figure.source.empty()) complain(path, "the source of the number", "none");
}

void check_table(const TimeTable& table, const std::string& path) {
  if (table == TimeTable{}) return;
  if (table.points.size() < 2 || table.points.size() > max_points) {
    complain(path, "2 to " + std::to_string(max_points) + " points", std::to_string(table.points.size()));
  }
  TimeTable::Point before;
  for (const TimeTable::Point& point : table.points) {
    const bool finite = std::isfinite(point.bytes) && std::isfinite(point.seconds);
    if (finite && point.bytes != std::floor(point.bytes)) {
      complain(path, "whole numbers of bytes", text(point.bytes));
    }
    if (!finite || !(point.bytes > before.bytes) || !(point.seconds > 0) || !(point.seconds >= before.seconds)) {
      complain(path, "finite bytes above 0 that ascend, and seconds above 0 that do not descend",
               text(point.seconds) + " s for " + text(point.bytes) + " bytes after " + text(before.seconds) +
                   " s for " + text(before.bytes));
    }
    before = point;
  }
  if (table.source.empty()) complain(path, "the source of the numbers", "none");
}

// `prefix` stands before the names of the fields.
template <class Owner>
void check_fields(const Owner& owner, const std::string& prefix, std::span<const FigureField<Owner>> figures,
                  std::span<const TableField<Owner>> tables) {
  for (const auto& field : figures) check_figure(owner.*field.member, prefix + field.name, field.need);
  for (const auto& field : tables) check_table(owner.*field.member, prefix + field.name);
}

void check_extents(const Level& level, const std::string& path) {
  const std::size_t size = level.extents.size();
  const std::string found = std::to_string(size);
  switch (level.routing) {
    case Routing::all_to_all:
    case Routing::mesh:
      if (size != 1) complain(path, "one number, the members", found + " numbers");
      break;
    case Routing::dragonfly:
      if (size != 3) complain(path, "members per router, routers per group, and groups", found + " numbers");
      break;
    case Routing::fat_tree:
    case Routing::torus:
      if (size < 1 || size > max_extents) {
        complain(path, "1 to " + std::to_string(max_extents) + " numbers", found);
      }
  }
  std::int64_t members = 1;
  for (const std::int64_t extent : level.extents) {
    if (extent < 1) complain(path, "numbers of at least 1", std::to_string(extent));
    if (extent > max_processors / members) {
      complain(path, "at most " + std::to_string(max_processors) + " members", "more");
    }
    members *= extent;
  }
  // The simulator numbers the other members of a mesh, and routers and groups, in so many bits.
  const std::int64_t numbered = level.routing == Routing::mesh        ? members
                                : level.routing == Routing::dragonfly ? std::max(level.extents[1], level.extents[2])
                                                                      : 0;
  if (numbered > max_numbered) {
    complain(path, "at most " + std::to_string(max_numbered) + " members of a mesh, routers of a group or groups",
             std::to_string(numbered));
  }
}

void check_taper(const Level& level, const std::string& path) {
  const bool tree = level.routing == Routing::fat_tree;
  const std::size_t expected = tree ? level.extents.size() - 1 : 0;
  if (level.taper.size() != expected) {
    complain(path, tree ? "one number per tier but the last, " + std::to_string(expected) : "none, this is no fat tree",
             base::counted(level.taper.size(), "number"));
  }
  for (const double one : level.taper) {
    if (!(one > 0) || !std::isfinite(one)) complain(path, "finite numbers above 0", text(one));
  }
}

// Bandwidths that only dragonflies have.
void check_dragonfly(const Level& level, const std::string& path) {
  const bool dragonfly = level.routing == Routing::dragonfly;
  const auto check = [&](const Figure& figure, const char* name, bool needed) {
    const std::string where = path + "." + name;
    if (!dragonfly && figure != Figure{}) complain(where, "none, this is no dragonfly", text(figure.value));
    if (dragonfly && (needed || figure != Figure{})) check_figure(figure, where, Need::positive);
  };
  check(level.local_bandwidth, "local_bandwidth", dragonfly && level.extents[1] > 1);
  check(level.group_bandwidth, "group_bandwidth", dragonfly && level.extents[2] > 1);
}

void check_level(const Level& level, const std::string& path) {
  if (level.name.empty()) complain(path + ".name", "a name", "an empty text");
  check_extents(level, path + ".extents");
  check_dragonfly(level, path);
  check_fields<Level>(level, path + ".", detail::level_figures, detail::level_tables);
  if (level.one_way.empty() && !level.both_ways.empty()) {
    complain(path + ".one_way", "the times of messages that flow alone, beside both_ways", "none");
  }
  if (level.links < 1 || level.links > max_links) {
    complain(path + ".links", "1 to " + std::to_string(max_links), std::to_string(level.links));
  }
  if (level.interfaces < 0 || level.interfaces > max_links) {
    complain(path + ".interfaces", "1 to " + std::to_string(max_links), std::to_string(level.interfaces));
  }
  if (level.interfaces > 0 && !(level.injection.value > 0)) {
    complain(path + ".injection", "the bandwidth that " + std::to_string(level.interfaces) + " interfaces share",
             "none");
  }
  check_taper(level, path + ".taper");
}

}  // namespace

std::string_view to_string(Basis basis) { return detail::name_of(basis, bases); }
Basis basis_from_string(std::string_view name) { return detail::value_of(name, bases, "a basis"); }
std::string_view to_string(Routing routing) { return detail::name_of(routing, routings); }
Routing routing_from_string(std::string_view name) { return detail::value_of(name, routings, "a routing"); }

double TimeTable::seconds(double bytes) const {
  const auto above = std::ranges::find_if(points, [&](const Point& point) { return point.bytes >= bytes; });
  if (above == points.begin()) return above->seconds;
  const Point& low = *(above - 1);
  if (above == points.end()) return low.seconds * bytes / low.bytes;
  const double part = std::log(bytes / low.bytes) / std::log(above->bytes / low.bytes);
  return low.seconds * std::pow(above->seconds / low.seconds, part);
}

double Machine::packing_seconds(double bytes, double pieces) const {
  if (pieces <= 0) return 0;
  if (packed_pieces.empty()) return pieces * packed_piece.value;
  return pieces * packed_pieces.seconds(std::min(bytes / pieces, packed_pieces.points.back().bytes));
}

std::int64_t Level::members() const {
  std::int64_t members = 1;
  for (const std::int64_t extent : extents) members *= extent;
  return members;
}

std::int64_t Machine::processors() const {
  std::int64_t processors = 1;
  for (const Level& level : levels) processors *= level.members();
  return processors;
}

void Machine::check() const {
  if (name.empty()) complain("name", "a name", "an empty text");
  if (levels.empty() || levels.size() > max_levels) {
    complain("levels", "1 to " + std::to_string(max_levels) + " levels", std::to_string(levels.size()));
  }
  std::set<std::string> names;
  std::int64_t processors = 1;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const std::string path = "levels[" + std::to_string(i) + "]";
    check_level(levels[i], path);
    if (!names.insert(levels[i].name).second) {
      complain(path + ".name", "a different name for every level", "\"" + levels[i].name + "\" twice");
    }
    const std::int64_t members = levels[i].members();
    if (members > max_processors / processors) {
      complain(path + ".extents", "at most " + std::to_string(max_processors) + " processors in all", "more");
    }
    processors *= members;
  }
  check_fields<Machine>(*this, "", detail::machine_figures, detail::machine_tables);
}

}  // namespace onehop
