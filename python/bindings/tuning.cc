#include "onehop/tuning.h"

#include "onehop/wait.h"
#include "python/bindings/bindings.h"

void bind_tuning(nb::module_& module) {
  module.def("tuning", [] { return onehop::tuning().to_json(); }, "Return the tuning in force as JSON.");
  module.def(
      "tuning_origin", [] { return onehop::tuning().origin; },
      "Return the file of the tuning in force, or \"built in\".");
  module.def(
      "built_in_tuning", [] { return onehop::built_in_tuning().to_json(); }, "Return the built-in tuning as JSON.");
  module.def("tuning_file", &onehop::tuning_file, "Return the file in which `onehop tune` saves its result.");
  module.def("tuning_text", &onehop::tuning_text,
             "Return the text of that file; None if there is none, or it is too long or no regular file.");
  module.def(
      "check_tuning", [](const std::string& json) { return onehop::Tuning::from_json(json).to_json(); }, "json"_a,
      "Check a tuning; return it as onehop reads it. Raises BadInput if the text is no tuning.");
  module.def("set_sleep_early", &onehop::set_sleep_early, "early"_a,
             "Set whether all waits of the calling thread sleep after one yield, for threads that communicate while "
             "others compute on all processors.");
}
