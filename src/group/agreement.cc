#include "src/group/agreement.h"

#include <span>

#include "onehop/error.h"

namespace onehop::detail {

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an unknown exception";
  }
}

void agree(GroupState& group, const std::string& step, const std::exception_ptr& own) {
  const std::string failure = own ? message_of(own) : std::string();
  const Gathered failures = group.allgather(std::as_bytes(std::span<const char>(failure)));
  if (own) std::rethrow_exception(own);
  for (std::size_t r = 0; r < failures.size(); ++r) {
    if (failures[r].empty()) continue;
    throw Error(step + " failed on rank " + std::to_string(r) + ": " +
                std::string(reinterpret_cast<const char*>(failures[r].data()), failures[r].size()));
  }
}

}  // namespace onehop::detail
