// Settings that depend on the machine: how to store into slots, the size of chunks, how long to spin. Defaults are
// built in. `onehop tune` measures better values once and saves them in the user's cache folder, from where they are
// read on first use.
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
  // Number of polls of a flag before a waiting rank yields its processor, and number of yields before it sleeps.
  // `spins_oversubscribed` replaces `spins` where a machine runs more ranks than it has processors.
  int spins = 300;
  int spins_oversubscribed = 2;
  int yields = 100;
  // In ascending order. The last rule also applies to longer messages.
  std::vector<SizeRule> rules;
  // Default size of the fragments into which plans cut messages.
  std::int64_t slot_bytes = 256 << 10;
  // Messages up to this size get `small_slots` slots instead of two, so that the sender rarely has to read `released`.
  std::int64_t small_bytes = 1024;
  int small_slots = 4;
  // Whether senders in shared memory change between plain and non-temporal stores while they run, in slots of more than
  // 2048 bytes. `SizeRule::stores`, if it is one of these two, is then where they begin.
  bool adaptive_stores = true;
  std::string origin = "built in";  // or the file it was read from

  [[nodiscard]] const SizeRule& rule(std::int64_t bytes) const;
  [[nodiscard]] std::string to_json() const;
  [[nodiscard]] static Tuning from_json(const std::string& text);  // throws BadInput
};

// The defaults for this processor, without any file.
[[nodiscard]] Tuning built_in_tuning();

// The file in which `onehop tune` saves its result: $ONEHOP_TUNING, else $XDG_CACHE_HOME/onehop/tuning.json, else
// ~/.cache/onehop/tuning.json.
[[nodiscard]] std::string tuning_file();

// The text of that file, if it exists and can be read. It must be a regular file of at most 1 MiB.
[[nodiscard]] std::optional<std::string> tuning_text();

// The tuning in use. A damaged file is reported once on stderr and ignored, and so is a missing file that
// $ONEHOP_TUNING names.
[[nodiscard]] const Tuning& tuning();
// Replaces the tuning for later channels and waits of this process. Must not be called while other threads open
// channels.
void set_tuning(Tuning tuning);

[[nodiscard]] std::string_view to_string(StoreKind kind);
[[nodiscard]] StoreKind store_kind_from_string(std::string_view name);  // throws BadInput

}  // namespace onehop
