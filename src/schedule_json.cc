// A schedule as text. docs/schedule.md describes the format; `format_version` counts its changes.
#include <algorithm>
#include <initializer_list>
#include <limits>

#include "json_text.h"
#include "onehop/error.h"
#include "onehop/schedule.h"

namespace onehop {

namespace {

using detail::Json;

constexpr int format_version = 1;

Json to_json_value(const Slice& slice) {
  if (slice.is_list()) return {{"indices", slice.indices()}};
  if (slice.elements() == 0) return {{"offset", 0}, {"extents", {0}}, {"strides", {1}}};
  return {{"offset", slice.offset()}, {"extents", slice.extents()}, {"strides", slice.strides()}};
}

Json to_json_value(const Place& place) {
  return {{"rank", place.rank}, {"array", place.array}, {"slice", to_json_value(place.slice)}};
}

Json to_json_value(const Transfer& transfer) {
  return {{"from", to_json_value(transfer.from)},
          {"to", to_json_value(transfer.to)},
          {"combine", to_string(transfer.combine)},
          {"codec", to_string(transfer.codec)}};
}

Json to_json_value(const ArraySpec& array) {
  Json json = {{"name", array.name}, {"element_bytes", array.element_bytes}, {"type", to_string(array.type)}};
  if (array.elements.size() == 1) {
    json["elements"] = array.elements.front();
  } else {
    json["elements"] = array.elements;
  }
  return json;
}

Json to_json_value(const BitPermutation& permutation) {
  return {{"array", permutation.array}, {"local_bits", permutation.local_bits}, {"to", permutation.to}};
}

// A value of the text together with the way to it, so that every complaint can say where. The way is a chain of nodes,
// each of which lives in the call that reads it, and becomes text only when somebody complains.
class Node {
 public:
  explicit Node(const Json& root) : json_(root) {}

  [[noreturn]] void complain(const std::string& expected, const std::string& found) const {
    throw BadInput(path() + ": expected " + expected + ", found " + found);
  }

  [[noreturn]] void complain(const std::string& expected) const {
    constexpr std::size_t longest = 60;
    std::string found = json_.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (found.size() > longest) found = std::string(json_.type_name()) + " " + found.substr(0, longest) + "...";
    complain(expected, found);
  }

  void expect_keys(std::initializer_list<const char*> required,
                   std::initializer_list<const char*> optional = {}) const {
    if (!json_.is_object()) complain("an object");
    for (const auto& item : json_.items()) {
      const auto is_key = [&](const char* key) { return item.key() == key; };
      if (std::ranges::any_of(required, is_key) || std::ranges::any_of(optional, is_key)) continue;
      std::string known;
      for (const auto& keys : {required, optional}) {
        for (const char* key : keys) known += (known.empty() ? "" : ", ") + std::string(key);
      }
      complain("only the keys " + known, "\"" + item.key() + "\"");
    }
    for (const char* key : required) {
      if (!json_.contains(key)) complain("the key \"" + std::string(key) + "\"", "none");
    }
  }

  [[nodiscard]] bool has(const char* key) const { return json_.contains(key); }

  [[nodiscard]] Node at(const char* key) const { return {json_.at(key), this, key, 0}; }

  template <class Visit>
  void for_each(Visit&& visit) const {
    if (!json_.is_array()) complain("an array");
    for (std::size_t i = 0; i < json_.size(); ++i) visit(Node(json_[i], this, nullptr, i));
  }

  [[nodiscard]] bool is_array() const { return json_.is_array(); }

  [[nodiscard]] std::string text() const {
    if (!json_.is_string()) complain("a string");
    return json_.get<std::string>();
  }

  [[nodiscard]] std::int64_t integer(std::int64_t smallest, std::int64_t largest) const {
    constexpr std::uint64_t limit = std::numeric_limits<std::int64_t>::max();
    const bool fits = json_.is_number_integer() && (!json_.is_number_unsigned() || json_.get<std::uint64_t>() <= limit);
    if (fits) {
      const auto value = json_.get<std::int64_t>();
      if (value >= smallest && value <= largest) return value;
    }
    complain("an integer from " + std::to_string(smallest) + " to " + std::to_string(largest));
  }

  [[nodiscard]] int small_integer(int smallest) const {
    return static_cast<int>(integer(smallest, std::numeric_limits<int>::max()));
  }

  [[nodiscard]] std::vector<std::int64_t> integers(std::int64_t smallest) const {
    std::vector<std::int64_t> values;
    for_each(
        [&](const Node& node) { values.push_back(node.integer(smallest, std::numeric_limits<std::int64_t>::max())); });
    return values;
  }

  // Calls read(), and puts the way to this value before what it complains of.
  template <class Read>
  [[nodiscard]] auto read(Read&& read) const {
    try {
      return read();
    } catch (const BadInput& error) {
      throw BadInput(path() + ": " + error.what());
    }
  }

 private:
  Node(const Json& json, const Node* parent, const char* key, std::size_t index)
      : json_(json), parent_(parent), key_(key), index_(index) {}

  [[nodiscard]] std::string path() const {
    if (parent_ == nullptr) return "the schedule";
    const std::string before = parent_->parent_ == nullptr ? "" : parent_->path();
    if (key_ == nullptr) return before + "[" + std::to_string(index_) + "]";
    return before.empty() ? key_ : before + "." + key_;
  }

  const Json& json_;
  const Node* parent_ = nullptr;
  const char* key_ = nullptr;  // in an object
  std::size_t index_ = 0;      // in an array
};

constexpr std::int64_t any_integer = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t largest_integer = std::numeric_limits<std::int64_t>::max();

Slice slice_from(const Node& node) {
  if (node.has("indices")) {
    node.expect_keys({"indices"});
    auto indices = node.at("indices").integers(0);
    return node.read([&] { return Slice::list(std::move(indices)); });
  }
  node.expect_keys({"offset", "extents", "strides"});
  const auto offset = node.at("offset").integer(any_integer, largest_integer);
  const auto extents = node.at("extents").integers(0);
  const auto strides = node.at("strides").integers(any_integer);
  return node.read([&] { return Slice::box(offset, extents, strides); });
}

// Ranks and arrays may be ones that do not exist: saying so is left to `verify`, which knows the transfer.
Place place_from(const Node& node) {
  node.expect_keys({"rank", "array", "slice"});
  constexpr int smallest = std::numeric_limits<int>::min();
  return {node.at("rank").small_integer(smallest), node.at("array").small_integer(smallest),
          slice_from(node.at("slice"))};
}

template <class Value>
Value named(const Node& node, const char* key, Value otherwise, Value (*from_string)(std::string_view)) {
  if (!node.has(key)) return otherwise;
  const Node name = node.at(key);
  const std::string text = name.text();
  return name.read([&] { return from_string(text); });
}

Transfer transfer_from(const Node& node) {
  node.expect_keys({"from", "to"}, {"combine", "codec"});
  return {place_from(node.at("from")), place_from(node.at("to")),
          named(node, "combine", Combine::replace, combine_from_string),
          named(node, "codec", Codec::raw, codec_from_string)};
}

// Whether it is a permutation, and of this schedule, is left to `verify` as well.
BitPermutation permutation_from(const Node& node) {
  node.expect_keys({"array", "local_bits", "to"});
  BitPermutation permutation{node.at("array").small_integer(0), node.at("local_bits").small_integer(0), {}};
  node.at("to").for_each([&](const Node& bit) { permutation.to.push_back(bit.small_integer(0)); });
  return permutation;
}

ArraySpec array_from(const Node& node, int ranks) {
  node.expect_keys({"name", "element_bytes", "elements"}, {"type"});
  ArraySpec array{node.at("name").text(),
                  node.at("element_bytes").integer(1, largest_integer),
                  named(node, "type", ElementType::bytes, element_type_from_string),
                  {}};
  const Node elements = node.at("elements");
  if (!elements.is_array()) {
    array.elements = {elements.integer(0, largest_integer)};
    return array;
  }
  array.elements = elements.integers(0);
  if (array.elements.size() != 1 && array.elements.size() != static_cast<std::size_t>(ranks)) {
    elements.complain("one number, or one for each of the " + std::to_string(ranks) + " ranks",
                      std::to_string(array.elements.size()));
  }
  return array;
}

// A repeated key would silently win over the first; no schedule needs one.
Json parse(std::string_view text) {
  std::vector<std::vector<std::string>> keys;
  const auto check_keys = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event != Json::parse_event_t::key) return true;
    const auto key = value.get<std::string>();
    if (std::ranges::find(keys.back(), key) != keys.back().end()) {
      throw BadInput("the schedule: expected every key once in an object, found \"" + key + "\" twice");
    }
    keys.back().push_back(key);
    return true;
  };
  try {
    return Json::parse(text, check_keys);
  } catch (const Json::parse_error& error) {
    throw BadInput(std::string("the schedule: expected JSON, found something else: ") + error.what());
  }
}

}  // namespace

std::string Schedule::to_json(int indent) const {
  Json json;
  json["onehop_schedule"] = format_version;
  json["name"] = name;
  json["ranks"] = ranks;
  json["arrays"] = Json::array();
  for (const ArraySpec& array : arrays) json["arrays"].push_back(to_json_value(array));
  json["rounds"] = Json::array();
  for (const Round& round : rounds) {
    Json transfers = Json::array();
    for (const Transfer& transfer : round.transfers) transfers.push_back(to_json_value(transfer));
    json["rounds"].push_back({{"transfers", std::move(transfers)}});
    if (round.permutation) json["rounds"].back()["permutation"] = to_json_value(*round.permutation);
  }
  json["must_cover"] = Json::array();
  for (const Place& place : must_cover) json["must_cover"].push_back(to_json_value(place));
  return detail::json_text(json, indent);
}

Schedule Schedule::from_json(std::string_view text) {
  const Json json = parse(text);
  const Node root(json);
  root.expect_keys({"onehop_schedule", "ranks", "arrays", "rounds"}, {"name", "must_cover"});
  const Node version = root.at("onehop_schedule");
  if (version.integer(any_integer, largest_integer) != format_version) {
    version.complain("the format version " + std::to_string(format_version) + ", which this onehop reads");
  }
  Schedule schedule;
  if (root.has("name")) schedule.name = root.at("name").text();
  schedule.ranks = root.at("ranks").small_integer(1);
  root.at("arrays").for_each([&](const Node& node) { schedule.arrays.push_back(array_from(node, schedule.ranks)); });
  root.at("rounds").for_each([&](const Node& node) {
    node.expect_keys({"transfers"}, {"permutation"});
    Round round;
    if (node.has("permutation")) round.permutation = permutation_from(node.at("permutation"));
    node.at("transfers").for_each([&](const Node& transfer) { round.transfers.push_back(transfer_from(transfer)); });
    schedule.rounds.push_back(std::move(round));
  });
  if (root.has("must_cover")) {
    root.at("must_cover").for_each([&](const Node& node) { schedule.must_cover.push_back(place_from(node)); });
  }
  return schedule;
}

}  // namespace onehop
