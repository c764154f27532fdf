// Open MPI lets every rank listen for TCP connections on all interfaces, also where all ranks share a machine and use
// its memory.
#pragma once

namespace onehop::detail {

// While it lives, an Open MPI that starts in this process opens no port, if all ranks of the launch share a machine. It
// changes nothing if the user has chosen Open MPI's transports, or if ranks may be in containers of their own, where
// they do not share memory.
class NoLocalPorts {
 public:
  NoLocalPorts();
  ~NoLocalPorts();
  NoLocalPorts(const NoLocalPorts&) = delete;
  NoLocalPorts& operator=(const NoLocalPorts&) = delete;

 private:
  bool set_ = false;
};

}  // namespace onehop::detail
