// Machines as JSON: the keys are the members of `Machine`, `Level` and `Figure`. Absent figures are left out.
#include <cmath>

#include "onehop/error.h"
#include "onehop/machine/machine.h"
#include "src/base/json_node.h"
#include "src/base/json_text.h"

namespace onehop {
namespace {

using detail::Json;
using detail::Node;

constexpr int format_version = 1;

Json to_json_value(const Figure& figure) {
  return {{"value", figure.value}, {"basis", to_string(figure.basis)}, {"source", figure.source}};
}

void set_optional(Json& json, const char* key, const Figure& figure) {
  if (figure != Figure{}) json[key] = to_json_value(figure);
}

void set_optional(Json& json, const char* key, const TimeTable& table) {
  if (table == TimeTable{}) return;
  Json points = Json::array();
  for (const TimeTable::Point& point : table.points) points.push_back({point.bytes, point.seconds});
  json[key] = {{"points", std::move(points)}, {"basis", to_string(table.basis)}, {"source", table.source}};
}

Json to_json_value(const Level& level) {
  Json json = {{"name", level.name}, {"routing", to_string(level.routing)}, {"extents", level.extents}};
  if (!level.topology.empty()) json["topology"] = level.topology;
  json["latency"] = to_json_value(level.latency);
  set_optional(json, "hop_latency", level.hop_latency);
  json["overhead"] = to_json_value(level.overhead);
  set_optional(json, "gap", level.gap);
  json["bandwidth"] = to_json_value(level.bandwidth);
  set_optional(json, "one_way", level.one_way);
  set_optional(json, "both_ways", level.both_ways);
  set_optional(json, "in_collective", level.in_collective);
  json["links"] = level.links;
  set_optional(json, "injection", level.injection);
  json["interfaces"] = level.interfaces;
  if (!level.taper.empty()) json["taper"] = level.taper;
  set_optional(json, "local_bandwidth", level.local_bandwidth);
  set_optional(json, "group_bandwidth", level.group_bandwidth);
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

TimeTable optional_table(const Node& parent, const char* key) {
  if (!parent.has(key)) return {};
  const Node node = parent.at(key);
  node.expect_keys({"points", "basis", "source"});
  TimeTable table{{}, basis_of(node), node.at("source").text()};
  node.at("points").for_each([&](const Node& pair) {
    const std::vector<double> numbers = pair.list([](const Node& one) { return one.number(); });
    if (numbers.size() != 2) pair.complain("a pair of bytes and seconds");
    table.points.push_back({numbers[0], numbers[1]});
  });
  return table;
}

Figure optional_figure(const Node& node, const char* key) {
  return node.has(key) ? figure_from(node.at(key)) : Figure{};
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
  level.latency = figure_from(node.at("latency"));
  level.hop_latency = optional_figure(node, "hop_latency");
  level.overhead = figure_from(node.at("overhead"));
  level.gap = optional_figure(node, "gap");
  level.bandwidth = figure_from(node.at("bandwidth"));
  level.one_way = optional_table(node, "one_way");
  level.both_ways = optional_table(node, "both_ways");
  level.in_collective = optional_table(node, "in_collective");
  if (node.has("links")) level.links = node.at("links").integer(detail::any_integer, detail::largest_integer);
  level.injection = optional_figure(node, "injection");
  if (node.has("interfaces"))
    level.interfaces = node.at("interfaces").integer(detail::any_integer, detail::largest_integer);
  if (node.has("taper")) level.taper = node.at("taper").list([](const Node& one) { return one.number(); });
  level.local_bandwidth = optional_figure(node, "local_bandwidth");
  level.group_bandwidth = optional_figure(node, "group_bandwidth");
  return level;
}

}  // namespace

std::string Machine::to_json(int indent) const {
  Json json;
  json["onehop_machine"] = format_version;
  json["name"] = name;
  json["title"] = title;
  json["levels"] = Json::array();
  for (const Level& level : levels) json["levels"].push_back(to_json_value(level));
  json["memory_bandwidth"] = to_json_value(memory_bandwidth);
  json["memory"] = to_json_value(memory);
  set_optional(json, "copies", copies);
  set_optional(json, "updates", updates);
  set_optional(json, "shared_updates", shared_updates);
  set_optional(json, "packed_piece", packed_piece);
  set_optional(json, "packed_pieces", packed_pieces);
  set_optional(json, "copied_piece", copied_piece);
  set_optional(json, "used_line", used_line);
  set_optional(json, "multiply_adds_double", multiply_adds_double);
  set_optional(json, "multiply_adds_single", multiply_adds_single);
  return detail::json_text(json, indent);
}

Machine Machine::from_json(std::string_view text) {
  const std::string name = "the machine";
  const Node root(text, name);
  root.expect_keys({"onehop_machine", "name", "levels", "memory_bandwidth", "memory"},
                   {"title", "copies", "updates", "shared_updates", "packed_piece", "packed_pieces", "copied_piece",
                    "used_line", "multiply_adds_double", "multiply_adds_single"});
  const Node version = root.at("onehop_machine");
  if (version.integer(detail::any_integer, detail::largest_integer) != format_version) {
    version.complain("the format version " + std::to_string(format_version) + ", which this onehop reads");
  }
  Machine machine;
  machine.name = root.at("name").text();
  if (root.has("title")) machine.title = root.at("title").text();
  machine.levels = root.at("levels").list(level_from);
  machine.memory_bandwidth = figure_from(root.at("memory_bandwidth"));
  machine.memory = figure_from(root.at("memory"));
  machine.copies = optional_table(root, "copies");
  machine.updates = optional_table(root, "updates");
  machine.shared_updates = optional_table(root, "shared_updates");
  machine.packed_piece = optional_figure(root, "packed_piece");
  machine.packed_pieces = optional_table(root, "packed_pieces");
  machine.copied_piece = optional_figure(root, "copied_piece");
  machine.used_line = optional_figure(root, "used_line");
  machine.multiply_adds_double = optional_figure(root, "multiply_adds_double");
  machine.multiply_adds_single = optional_figure(root, "multiply_adds_single");
  machine.check();
  return machine;
}

}  // namespace onehop
