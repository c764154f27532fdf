#include "python/bindings/quantum_profile.h"

using onehop::quantum::PassPart;
using onehop::quantum::ProfileEntry;

nb::dict pass_dict(const onehop::quantum::PassSummary& pass) {
  nb::dict dict;
  dict["tile_bits"] = pass.tile_bits;
  dict["gates"] = pass.gates;
  dict["rotations"] = pass.rotations;
  dict["pairs"] = pass.pairs;
  dict["matrices"] = pass.matrices;
  dict["phases"] = pass.phases;
  dict["tables"] = pass.tables;
  dict["sweeps"] = pass.sweeps;
  dict["multiply_adds"] = pass.multiply_adds;
  return dict;
}

nb::dict profile_dict(const ProfileEntry& entry) {
  const bool is_pass = entry.kind == ProfileEntry::Kind::pass;
  nb::dict dict = is_pass ? pass_dict(entry.pass.pass) : nb::dict();
  dict["kind"] = name_of(entry.kind);
  dict["run"] = entry.run;
  dict["stage"] = entry.stage;
  dict["begin"] = entry.begin;
  dict["seconds"] = entry.seconds;
  dict["bytes"] = entry.bytes;
  if (is_pass) {
    nb::dict parts;
    for (std::size_t p = 0; p < onehop::quantum::pass_parts; ++p) {
      parts[name_of(static_cast<PassPart>(p))] = entry.pass.parts[p];
    }
    dict["parts"] = parts;
  }
  return dict;
}
