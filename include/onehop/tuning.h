// What this machine likes: how to store into slots, how large chunks should be, how long to spin. Sound defaults are built
// in; `onehop tune` measures once and keeps the answer in the user's cache folder, from where it is read on first use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onehop/channel.h"

namespace onehop {

// For messages of up to `up_to` bytes.
struct SizeRule {
  std::int64_t up_to = 0;
  std::int64_t chunk_bytes = 0;
  StoreKind stores = StoreKind::plain;
};

struct Tuning {
  // Looks at a colour before giving way to other processes; then how often to give way before sleeping. `spins_crowded` holds
  // where there are more ranks than processors.
  int spins = 300;
  int spins_crowded = 2;
  int yields = 20;
  // Ascending; the last rule holds for everything longer, too.
  std::vector<SizeRule> rules;
  // Messages are cut in fragments of this size by plans that are not told otherwise.
  std::int64_t slot_bytes = 256 << 10;
  // Messages up to this size get `small_slots` slots instead of two: the sender then looks rarely at what was released.
  std::int64_t small_bytes = 1024;
  int small_slots = 4;
  std::string origin = "built in";  // or the file it was read from

  [[nodiscard]] const SizeRule& rule(std::int64_t bytes) const;
  [[nodiscard]] std::string to_json() const;
  [[nodiscard]] static Tuning from_json(const std::string& text);  // throws BadInput
};

// The defaults for this processor, without any file.
[[nodiscard]] Tuning built_in_tuning();

// Where `onehop tune` keeps its answer: $ONEHOP_TUNING, else $XDG_CACHE_HOME/onehop/tuning.json, else ~/.cache/onehop/tuning.json.
[[nodiscard]] std::string tuning_file();

// Its text, if it is there and can be read: a file of at most 1 MiB. FIFOs and devices are not waited for.
[[nodiscard]] std::optional<std::string> tuning_text();

// The tuning in force. A damaged file is reported once on stderr and not used; so is a file that is
// not there though $ONEHOP_TUNING names it.
[[nodiscard]] const Tuning& tuning();
// Replaces it for channels and waits from now on in this process. Not while other threads open channels.
void set_tuning(Tuning tuning);

[[nodiscard]] std::string_view to_string(StoreKind kind);
[[nodiscard]] StoreKind store_kind_from_string(std::string_view name);  // throws BadInput

}  // namespace onehop
