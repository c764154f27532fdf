// Ranks that meet, and processes that disturb them.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "src/group/local_socket.h"

namespace onehop::testing {

constexpr uid_t other_user = 65534;

[[nodiscard]] std::string key_of_test();

// The name of the socket of rank 0.
[[nodiscard]] std::string meeting_point(const std::string& key);

// A process of this or another user that runs `work` and then stays until the end of the test.
class Child {
 public:
  Child(uid_t user, const std::function<void()>& work);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] int pid() const { return pid_; }

 private:
  int pid_ = -1;
  bool good_ = false;
};

// Runs ranks that meet by `key`, each as a process. Returns "met" or the error of each.
[[nodiscard]] std::vector<std::string> meet_as(const std::vector<int>& ranks, int size, const std::string& key,
                                               const char* limit, const std::function<void()>& meanwhile = {});

[[nodiscard]] bool has(const std::string& text, const std::string& words);

// Tries to connect until there is a listener, then sends `bytes`.
[[nodiscard]] detail::Socket connect_and_say(const std::string& name, const std::string& bytes);

}  // namespace onehop::testing
