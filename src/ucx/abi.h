// The part of UCX's binary interface (its communication layer, UCP) that onehop uses, declared by hand,
// so that neither building nor installing onehop needs UCX. All structures are versioned by their field masks: UCX
// reads and writes only the fields whose bits are set, and new versions append fields. tests/ucx/test_abi.cc compares
// sizes, offsets and constants with UCX's own headers where they are installed.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace onehop::detail::ucx {

// A byte in UCX's interface.
enum class Status : std::int8_t {
  ok = 0,
  in_progress = 1,
  no_device = -14,
  unreachable = -6,
  canceled = -16,
};

// Opaque objects of the library.
struct Context;
struct Worker;
struct RemoteEnd;  // an endpoint: this worker's connection to another one
struct Address;
struct Config;
struct Memory;     // a registered region
struct RemoteKey;  // the right to write to a region of another process

inline constexpr unsigned api_major = 1;
inline constexpr unsigned api_minor = 10;

inline constexpr std::uint64_t feature_rma = 1 << 1;
inline constexpr std::uint64_t feature_messages = 1 << 6;

struct ContextParams {
  static constexpr std::uint64_t has_features = 1 << 0;
  static constexpr std::uint64_t has_mt_workers_shared = 1 << 5;
  std::uint64_t field_mask = 0;
  std::uint64_t features = 0;
  std::size_t request_size = 0;
  void (*request_init)(void*) = nullptr;
  void (*request_cleanup)(void*) = nullptr;
  std::uint64_t tag_sender_mask = 0;
  int mt_workers_shared = 0;
  std::size_t estimated_endpoints = 0;
  std::size_t estimated_per_node = 0;
  const char* name = nullptr;
};

enum class ThreadMode : std::uint32_t { single, serialized, multi };

struct WorkerParams {
  static constexpr std::uint64_t has_thread_mode = 1 << 0;
  std::uint64_t field_mask = 0;
  ThreadMode thread_mode = ThreadMode::single;
  std::uint64_t cpu_mask[16] = {};
  unsigned events = 0;
  void* user_data = nullptr;
  int event_fd = -1;
  std::uint64_t flags = 0;
  const char* name = nullptr;
  std::size_t am_alignment = 0;
  std::uint64_t client_id = 0;
};

struct WorkerAttributes {
  static constexpr std::uint64_t has_address = 1 << 1;
  std::uint64_t field_mask = 0;
  ThreadMode thread_mode = ThreadMode::single;
  std::uint32_t address_flags = 0;
  Address* address = nullptr;
  std::size_t address_length = 0;
  std::size_t max_am_header = 0;
  char name[32] = {};
  std::size_t max_debug_string = 0;
};

enum class ErrorHandling : std::uint32_t { none, peer };

struct SocketAddress {
  const sockaddr* address = nullptr;
  socklen_t length = 0;
};

struct EndParams {
  static constexpr std::uint64_t has_address = 1 << 0;
  static constexpr std::uint64_t has_error_mode = 1 << 1;
  static constexpr std::uint64_t has_error_handler = 1 << 2;
  std::uint64_t field_mask = 0;
  const Address* address = nullptr;
  ErrorHandling error_mode = ErrorHandling::none;
  struct {
    void (*call)(void* argument, RemoteEnd*, Status) = nullptr;
    void* argument = nullptr;
  } error_handler;
  void* user_data = nullptr;
  unsigned flags = 0;
  SocketAddress socket;
  void* connection_request = nullptr;
  const char* name = nullptr;
  SocketAddress local_socket;
};

// What an endpoint uses.
struct TransportEntry {
  const char* transport = nullptr;
  const char* device = nullptr;
};
struct EndAttributes {
  static constexpr std::uint64_t has_transports = 1 << 3;
  std::uint64_t field_mask = 0;
  char name[32] = {};
  sockaddr_storage local = {};
  sockaddr_storage remote = {};
  struct {
    TransportEntry* entries = nullptr;
    unsigned count = 0;
    std::size_t entry_bytes = sizeof(TransportEntry);
  } transports;
  void* user_data = nullptr;
};

struct RequestParams {
  static constexpr std::uint32_t has_callback = 1 << 1;
  static constexpr std::uint32_t has_user_data = 1 << 2;
  static constexpr std::uint32_t has_flags = 1 << 4;
  static constexpr std::uint32_t eager = 1 << 1;        // of an active message: no handshake before the data
  static constexpr std::uint32_t copy_header = 1 << 3;  // of an active message: the header need not outlive the call
  static constexpr std::uint32_t force_close = 1 << 0;  // of closing an endpoint: without flushing it
  std::uint32_t field_mask = 0;
  std::uint32_t flags = 0;
  void* request = nullptr;
  void (*call)(void* request, Status, void* user_data) = nullptr;
  std::uint64_t datatype = 0;
  void* user_data = nullptr;
  void* reply_buffer = nullptr;
  std::uint32_t memory_type = 0;
  std::size_t* received = nullptr;
  Memory* memory = nullptr;
};

struct MessageDetails;
using MessageHandler = Status (*)(void* argument, const void* header, std::size_t header_bytes, void* data,
                                  std::size_t bytes, const MessageDetails*);
struct HandlerParams {
  static constexpr std::uint64_t has_id = 1 << 0;
  static constexpr std::uint64_t has_flags = 1 << 1;
  static constexpr std::uint64_t has_call = 1 << 2;
  static constexpr std::uint64_t has_argument = 1 << 3;
  static constexpr std::uint32_t whole_message = 1 << 0;  // the handler sees a message only when all of it is there
  std::uint64_t field_mask = 0;
  unsigned id = 0;
  std::uint32_t flags = 0;
  MessageHandler call = nullptr;
  void* argument = nullptr;
};

struct MapParams {
  static constexpr std::uint64_t has_address = 1 << 0;
  static constexpr std::uint64_t has_length = 1 << 1;
  std::uint64_t field_mask = 0;
  void* address = nullptr;
  std::size_t length = 0;
  unsigned flags = 0;
  unsigned protection = 0;
  std::uint32_t memory_type = 0;
};

}  // namespace onehop::detail::ucx
