#include "tests/support/meeting.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "onehop/error.h"
#include "src/base/sha256.h"
#include "src/group/group_state.h"
#include "src/group/rendezvous.h"
#include "tests/support/faults.h"

namespace onehop::testing {

std::string key_of_test() { return "test." + std::to_string(getpid()); }

std::string meeting_point(const std::string& key) {
  const std::string user = std::to_string(geteuid());
  return "onehop-" + user + "-" + detail::sha256(user + "/" + key + "/").substr(0, 40);
}

Child::Child(uid_t user, const std::function<void()>& work) {
  std::array<int, 2> ready{};
  if (pipe(ready.data()) != 0) throw Error("no pipe");
  pid_ = fork();
  if (pid_ == 0) {
    if (user != geteuid() && setuid(user) != 0) _exit(1);
    work();
    static_cast<void>(!write(ready[1], "x", 1));
    for (;;) pause();
  }
  close(ready[1]);
  char word = 0;
  good_ = read(ready[0], &word, 1) == 1;
  close(ready[0]);
}

Child::~Child() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::vector<std::string> meet_as(const std::vector<int>& ranks, int size, const std::string& key, const char* limit,
                                 const std::function<void()>& meanwhile) {
  std::vector<std::pair<int, int>> started;
  for (const int rank : ranks) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) throw Error("no pipe");
    const int pid = fork();
    if (pid == 0) {
      setenv("ONEHOP_TIMEOUT", limit, 1);
      alarm(60);
      std::string text = "met";
      try {
        const Group group(detail::make_group(rank, size, "torchrun", detail::meet(key, rank, size)));
        group.barrier();
      } catch (const std::exception& error) {
        text = error.what();
      }
      static_cast<void>(!write(ends[1], text.data(), text.size()));
      _exit(0);
    }
    close(ends[1]);
    started.emplace_back(pid, ends[0]);
  }
  if (meanwhile) meanwhile();
  std::vector<std::string> said;
  for (const auto& [pid, end] : started) {
    std::string text(4096, '\0');
    const ssize_t got = read(end, text.data(), text.size());
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    said.push_back(text);
    close(end);
    waitpid(pid, nullptr, 0);
  }
  return said;
}

bool has(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

detail::Socket connect_and_say(const std::string& name, const std::string& bytes) {
  const detail::SocketName at(name);
  for (int tries = 0; tries < 1000; ++tries) {
    detail::Socket socket = detail::new_socket();
    if (connect(socket.fd(), at.address(), at.length) == 0) {
      static_cast<void>(detail::send_now(socket, std::as_bytes(std::span<const char>(bytes))));
      return socket;
    }
    nap(0.005);
  }
  return detail::Socket();
}

}  // namespace onehop::testing
