#include "onehop/tuning.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <optional>

#include "onehop/error.h"
#include "src/base/cpu.h"
#include "src/base/env.h"
#include "src/base/json_node.h"
#include "src/base/json_text.h"
#include "src/base/names.h"
#include "src/base/regular_file.h"
#include "src/channel/wait_limits.h"

namespace onehop {
namespace {

constexpr detail::NamedValue<StoreKind> store_kinds[] = {{StoreKind::plain, "plain"},
                                                         {StoreKind::prefetch, "prefetch"},
                                                         {StoreKind::demote, "demote"},
                                                         {StoreKind::nontemporal, "nontemporal"}};
constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();
// Values beyond these are mistakes, and would cause an endless wait or allocation.
constexpr std::int64_t max_bytes = std::int64_t{1} << 40U;
constexpr int max_tests = 1 << 30;
constexpr int max_slots = 1 << 16;

// Reads the file, which may be missing unless ONEHOP_TUNING names it.
detail::FileText read_file() {
  constexpr std::size_t longest = std::size_t{64} << 10U;
  detail::FileText file = detail::read_regular_file(tuning_file(), longest);
  if (file.is_missing && !env::text("ONEHOP_TUNING")) file.problem.clear();
  return file;
}

std::optional<Tuning> tuning_from_file() {
  const std::string path = tuning_file();
  const detail::FileText file = read_file();
  std::string problem = file.problem;
  if (file.text) {
    try {
      Tuning found = Tuning::from_json(*file.text);
      found.origin = path;
      return found;
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  if (!problem.empty()) {
    std::fprintf(stderr, "onehop: the tuning %s is not used (%s): run `onehop tune` to make it anew, or %s\n",
                 path.c_str(), problem.c_str(),
                 env::text("ONEHOP_TUNING") ? "let ONEHOP_TUNING name another file" : "delete it");
  }
  return std::nullopt;
}

detail::WaitLimits limits_of(const Tuning& tuning) {
  constexpr int where_pauses_are_short = 4;
  detail::WaitLimits limits{tuning.spins, tuning.spins_oversubscribed, tuning.yields};
  if (cpu::is_amd()) limits.polls_without_pause = where_pauses_are_short;
  return limits;
}

Tuning& current() {
  static Tuning tuning = [] {
    Tuning found = tuning_from_file().value_or(built_in_tuning());
    detail::wait_limits = limits_of(found);
    return found;
  }();
  return tuning;
}

}  // namespace

std::string_view to_string(StoreKind kind) { return detail::name_of(kind, store_kinds); }
StoreKind store_kind_from_string(std::string_view name) {
  return detail::value_of(name, store_kinds, "a kind of stores");
}

const SizeRule& Tuning::rule(std::int64_t bytes) const {
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const SizeRule& rule) { return bytes <= rule.up_to; });
  return found == rules.end() ? rules.back() : *found;
}

std::string Tuning::to_json() const {
  detail::Json json;
  json["onehop_tuning"] = 1;
  json["spins"] = spins;
  json["spins_oversubscribed"] = spins_oversubscribed;
  json["yields"] = yields;
  json["slot_bytes"] = slot_bytes;
  json["small_bytes"] = small_bytes;
  json["small_slots"] = small_slots;
  json["adaptive_stores"] = adaptive_stores;
  json["rules"] = detail::Json::array();
  for (const SizeRule& rule : rules) {
    detail::Json entry;
    entry["up_to"] = rule.up_to == no_end ? detail::Json(nullptr) : detail::Json(rule.up_to);
    entry["chunk_bytes"] = rule.chunk_bytes;
    entry["stores"] = to_string(rule.stores);
    json["rules"].push_back(entry);
  }
  return json.dump(2);
}

Tuning Tuning::from_json(const std::string& text) {
  const std::string name = "the tuning";
  const detail::Node root(text, name);
  const auto number = [](const detail::Node& node, const char* key, std::int64_t smallest, std::int64_t largest) {
    return node.required(key).integer(smallest, largest);
  };
  const auto count = [&](const char* key, int smallest, int largest) {
    return static_cast<int>(number(root, key, smallest, largest));
  };
  (void)number(root, "onehop_tuning", 1, 1);  // the version
  Tuning tuning;
  tuning.spins = count("spins", 0, max_tests);
  if (root.has("spins_crowded") && !root.has("spins_oversubscribed")) {
    root.complain("the key \"spins_oversubscribed\"", "its old name \"spins_crowded\"");
  }
  tuning.spins_oversubscribed = count("spins_oversubscribed", 0, max_tests);
  tuning.yields = count("yields", 0, max_tests);
  tuning.slot_bytes = number(root, "slot_bytes", 4096, max_bytes);
  tuning.small_bytes = number(root, "small_bytes", 0, max_bytes);
  tuning.small_slots = count("small_slots", 1, max_slots);
  if (root.has("adaptive_stores")) tuning.adaptive_stores = root.required("adaptive_stores").boolean();
  root.required("rules").for_each([&](const detail::Node& node) {
    const detail::Node up_to = node.required("up_to");
    SizeRule rule;
    rule.up_to = up_to.is_null() ? no_end : up_to.integer(0, no_end - 1);
    rule.chunk_bytes = number(node, "chunk_bytes", 64, max_bytes);
    const detail::Node stores = node.required("stores");
    const std::string kind = stores.text();
    rule.stores = stores.read([&] { return store_kind_from_string(kind); });
    if (!tuning.rules.empty() && rule.up_to <= tuning.rules.back().up_to) {
      up_to.complain("more than in the rule before, " + std::to_string(tuning.rules.back().up_to));
    }
    tuning.rules.push_back(rule);
  });
  if (tuning.rules.empty()) root.required("rules").complain("one rule or more");
  return tuning;
}

// docs/performance/messages.md and notes/messages.md have the measurements behind these.
Tuning built_in_tuning() {
  Tuning tuning;
  constexpr std::int64_t kib = 1 << 10;
  constexpr int zen5_family = 26;
  if (cpu::is_amd() && cpu::family() >= zen5_family) {
    tuning.rules = {{16 * kib, 16 * kib, StoreKind::plain},
                    {64 * kib, 16 * kib, StoreKind::nontemporal},
                    {no_end, 64 * kib, StoreKind::nontemporal}};
  } else if (cpu::is_amd()) {
    tuning.rules = {{4 * kib, 2 * kib, StoreKind::plain},
                    {64 * kib, 16 * kib, StoreKind::nontemporal},
                    {no_end, 64 * kib, StoreKind::nontemporal}};
    // Zen 4: slots as long as the second-level cache. Near cores read what has left it for the shared third level in
    // half of the time, and stores past the caches do not depend on the length.
    if (cpu::level() == cpu::Level::avx512) tuning.slot_bytes = 1024 * kib;
  } else if (cpu::is_intel()) {
    tuning.rules = {{1 * kib, 1 * kib, StoreKind::demote},
                    {16 * kib, 1 * kib, StoreKind::prefetch},
                    {64 * kib, 4 * kib, StoreKind::prefetch},
                    {2048 * kib, 16 * kib, StoreKind::plain},
                    {no_end, 256 * kib, StoreKind::plain}};
  } else {
    tuning.rules = {{4 * kib, 4 * kib, StoreKind::plain}, {no_end, 16 * kib, StoreKind::plain}};
  }
  return tuning;
}

std::string tuning_file() {
  if (const auto file = env::text("ONEHOP_TUNING")) return *file;
  if (const auto cache = env::text("XDG_CACHE_HOME")) return *cache + "/onehop/tuning.json";
  return env::text("HOME").value_or("") + "/.cache/onehop/tuning.json";
}

std::optional<std::string> tuning_text() { return read_file().text; }

const Tuning& tuning() { return current(); }

void set_tuning(Tuning tuning) {
  current() = std::move(tuning);
  detail::wait_limits = limits_of(current());
}

}  // namespace onehop
