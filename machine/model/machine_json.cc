// Machines as JSON: the keys are the members of `Machine`, `Level` and `Figure`. Absent figures are left out.
#include <span>

#include "machine/model/fields.h"
#include "onehop/error.h"
#include "onehop/machine/machine.h"
#include "src/base/json_node.h"
#include "src/base/json_text.h"

namespace onehop {
namespace {

using detail::FigureField;
using detail::Json;
using detail::Need;
using detail::Node;
using detail::TableField;

constexpr int format_version = 1;

Json to_json_value(const Figure& figure) {
  return {{"value", figure.value}, {"basis", to_string(figure.basis)}, {"source", figure.source}};
}

Json to_json_value(const TimeTable& table) {
  Json points = Json::array();
  for (const TimeTable::Point& point : table.points) points.push_back({point.bytes, point.seconds});
  return {{"points", std::move(points)}, {"basis", to_string(table.basis)}, {"source", table.source}};
}

template <class Owner>
void add_fields(Json& json, const Owner& owner, std::span<const FigureField<Owner>> figures,
                std::span<const TableField<Owner>> tables) {
  for (const auto& [name, member, need, meaning] : figures) {
    if (need != Need::optional || owner.*member != Figure{}) json[name] = to_json_value(owner.*member);
  }
  for (const auto& [name, member, meaning] : tables) {
    if (owner.*member != TimeTable{}) json[name] = to_json_value(owner.*member);
  }
}

Json to_json_value(const Level& level) {
  Json json = {{"name", level.name}, {"routing", to_string(level.routing)}, {"extents", level.extents}};
  if (!level.topology.empty()) json["topology"] = level.topology;
  json["links"] = level.links;
  json["interfaces"] = level.interfaces;
  if (!level.taper.empty()) json["taper"] = level.taper;
  add_fields<Level>(json, level, detail::level_figures, detail::level_tables);
  return json;
}

Basis basis_of(const Node& node) {
  const Node basis = node.at("basis");
  const std::string name = basis.text();
  return basis.read([&] { return basis_from_string(name); });
}

Figure figure_from(const Node& node) {
  node.expect_keys({"value", "basis", "source"});
  return {node.at("value").number(), basis_of(node), node.at("source").text()};
}

TimeTable table_from(const Node& node) {
  node.expect_keys({"points", "basis", "source"});
  TimeTable table{{}, basis_of(node), node.at("source").text()};
  node.at("points").for_each([&](const Node& pair) {
    const std::vector<double> numbers = pair.list([](const Node& one) { return one.number(); });
    if (numbers.size() != 2) pair.complain("a pair of bytes and seconds");
    table.points.push_back({numbers[0], numbers[1]});
  });
  return table;
}

template <class Owner>
void read_fields(const Node& node, Owner& owner, std::span<const FigureField<Owner>> figures,
                 std::span<const TableField<Owner>> tables) {
  for (const auto& [name, member, need, meaning] : figures) {
    if (node.has(name)) owner.*member = figure_from(node.at(name));
  }
  for (const auto& [name, member, meaning] : tables) {
    if (node.has(name)) owner.*member = table_from(node.at(name));
  }
}

Level level_from(const Node& node) {
  node.expect_keys({"name", "routing", "extents", "latency", "overhead", "bandwidth"},
                   {"topology", "hop_latency", "gap", "one_way", "both_ways", "in_collective", "links", "injection",
                    "interfaces", "taper", "local_bandwidth", "group_bandwidth"});
  Level level;
  level.name = node.at("name").text();
  const Node routing = node.at("routing");
  const std::string name = routing.text();
  level.routing = routing.read([&] { return routing_from_string(name); });
  level.extents = node.at("extents").integers(detail::any_integer);
  if (node.has("topology")) level.topology = node.at("topology").text();
  if (node.has("links")) level.links = node.at("links").integer(detail::any_integer, detail::largest_integer);
  if (node.has("interfaces"))
    level.interfaces = node.at("interfaces").integer(detail::any_integer, detail::largest_integer);
  if (node.has("taper")) level.taper = node.at("taper").list([](const Node& one) { return one.number(); });
  read_fields<Level>(node, level, detail::level_figures, detail::level_tables);
  return level;
}

}  // namespace

std::string Machine::to_json(int indent) const {
  Json json;
  json["onehop_machine"] = format_version;
  json["name"] = name;
  json["title"] = title;
  if (device) json["device"] = true;
  json["levels"] = Json::array();
  for (const Level& level : levels) json["levels"].push_back(to_json_value(level));
  add_fields<Machine>(json, *this, detail::machine_figures, detail::machine_tables);
  return detail::json_text(json, indent);
}

Machine Machine::from_json(std::string_view text) {
  const std::string name = "the machine";
  const Node root(text, name);
  root.expect_keys({"onehop_machine", "name", "levels", "memory_bandwidth", "memory"},
                   {"title", "device", "copies", "updates", "shared_updates", "packed_piece", "packed_pieces",
                    "copied_piece", "used_line", "multiply_adds_double", "multiply_adds_single"});
  const Node version = root.at("onehop_machine");
  if (version.integer(detail::any_integer, detail::largest_integer) != format_version) {
    version.complain("the format version " + std::to_string(format_version) + ", which this onehop reads");
  }
  Machine machine;
  machine.name = root.at("name").text();
  if (root.has("title")) machine.title = root.at("title").text();
  if (root.has("device")) machine.device = root.at("device").boolean();
  machine.levels = root.at("levels").list(level_from);
  read_fields<Machine>(root, machine, detail::machine_figures, detail::machine_tables);
  machine.check();
  return machine;
}

}  // namespace onehop
