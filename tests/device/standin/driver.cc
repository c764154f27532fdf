// A stand-in for the driver of cards, which runs kernels on the processor: libcuda.so.1, and with STANDIN_HIP
// libamdhip64.so. Memory can be mapped by other processes; a stream is a thread; a launch runs the kernel of onehop's
// table that has the name, after a check that the image holds it. Environment variables that describe the cards:
//   STANDIN_CARDS    how many (2); STANDIN_ARCH the number of their architecture (90, or 0x4c, which is gfx942)
//   STANDIN_VERSION  of the driver
//   STANDIN_FAIL     "cuMemAlloc_v2:3": the third call of this function from now on fails; "name:0": all calls
//   STANDIN_WRONG    the name of a kernel whose launches do nothing
// standin_calls(name) counts the calls of a function; standin_most_bytes() is the most memory that this process has had
// on cards since the last call; standin_freed_while_mapped() counts memory that was freed while others mapped it.
// NOLINTBEGIN: the names, parameters and casts are those of the drivers'.
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "src/device/kernels.h"
#include "tests/device/standin/streams.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace {

#ifdef STANDIN_HIP
#define STANDIN(cuda, hip) extern "C" __attribute__((visibility("default"))) int hip
constexpr bool is_hip = true;
#else
#define STANDIN(cuda, hip) extern "C" __attribute__((visibility("default"))) int cuda
constexpr bool is_hip = false;
#endif
#define CALLED(name) \
  if (const int code = called(name); code != 0) return code
// The same for functions that need a current card.
#define CALLED_ON_CARD(name) \
  CALLED(name);              \
  if (current < 0) return invalid_context
// The same for functions that a stream must not be captured for.
#define CALLED_OUTSIDE_GRAPHS(name, stream) \
  CALLED_ON_CARD(name);                     \
  if (stream_of(stream).is_capturing()) return cannot_be_captured

constexpr int out_of_memory = 2;
constexpr int invalid_value = 1;
constexpr int invalid_context = 201;
constexpr int invalid_handle = 400;
constexpr int no_binary_for_card = 209;
constexpr int not_found = 500;
constexpr int not_ready = 600;
constexpr int cannot_be_captured = 900;
constexpr int injected = 999;
constexpr std::uint64_t magic = 0x57A4D1;

thread_local int current = is_hip ? 0 : -1;
thread_local std::vector<int> before;

struct Shared {
  std::mutex mutex;
  std::map<std::string, int> calls;
  std::string failing;  // the value of STANDIN_FAIL that `left` belongs to
  int left = 0;
  struct Block {
    int fd = -1;
    std::size_t bytes = 0;
    int card = -1;
    void* other = nullptr;  // a second mapping, of pinned memory
  };
  std::map<char*, Block> blocks;
  std::size_t bytes = 0;  // on cards
  std::size_t most_bytes = 0;
  int freed_while_mapped = 0;
};
Shared& shared() {
  static auto& all = *new Shared;
  return all;
}

int number_from(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr || *text == 0 ? otherwise : static_cast<int>(std::strtol(text, nullptr, 0));
}

int called(const char* name) {
  Shared& all = shared();
  const std::lock_guard guard(all.mutex);
  ++all.calls[name];
  const char* const text = std::getenv("STANDIN_FAIL");
  const std::string failing = text == nullptr ? "" : text;
  const std::size_t colon = failing.find(':');
  if (failing != all.failing) {
    all.failing = failing;
    all.left = colon == std::string::npos ? -1 : std::atoi(failing.c_str() + colon + 1);
  }
  if (colon == std::string::npos || failing.substr(0, colon) != name) return 0;
  return std::atoi(failing.c_str() + colon + 1) == 0 || --all.left == 0 ? injected : 0;
}

Stream& stream_of(void* native) { return native != nullptr ? *static_cast<Stream*>(native) : default_stream(current); }

struct Module {
  std::string image;
  bool is_elf = false;
};
struct Function {
  std::string name;
};

// Behind memory a file has the number of mappings in other processes.
std::size_t file_bytes(std::size_t bytes) { return (bytes + 7) / 8 * 8 + 8; }
int* mappings_of(char* at, std::size_t bytes) { return reinterpret_cast<int*>(at + file_bytes(bytes) - 8); }

char* map_file(int fd, std::size_t bytes) {
  bytes = file_bytes(bytes);
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return nullptr;
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(at, bytes);  // src/group/shared_memory.cc says why
#endif
  return static_cast<char*>(at);
}

int allocate(void** at, std::size_t bytes, bool twice) {
  Shared::Block block{memfd_create("standin", MFD_CLOEXEC), bytes, current};
  if (block.fd < 0 || ftruncate(block.fd, static_cast<off_t>(file_bytes(bytes))) != 0) return out_of_memory;
  char* const found = map_file(block.fd, bytes);
  if (found == nullptr) return out_of_memory;
  if (twice) block.other = map_file(block.fd, bytes);
  if (!twice) std::memset(found, 0xA5, bytes);  // memory of cards is not zeroed
  Shared& all = shared();
  const std::lock_guard guard(all.mutex);
  all.blocks[found] = block;
  if (!twice) all.most_bytes = std::max(all.most_bytes, all.bytes += bytes);
  *at = found;
  return 0;
}

int release(void* at) {
  Stream::drain_all();
  const std::lock_guard guard(shared().mutex);
  const auto found = shared().blocks.find(static_cast<char*>(at));
  if (found == shared().blocks.end()) return invalid_value;
  const std::size_t bytes = found->second.bytes;
  int* const mappings = mappings_of(found->first, bytes);
  if (found->second.fd < 0) {
    __atomic_fetch_sub(mappings, 1, __ATOMIC_ACQ_REL);
  } else if (__atomic_load_n(mappings, __ATOMIC_ACQUIRE) != 0) {
    ++shared().freed_while_mapped;
  }
  munmap(at, file_bytes(bytes));
  if (found->second.other != nullptr) munmap(found->second.other, file_bytes(bytes));
  if (found->second.fd >= 0) close(found->second.fd);
  if (found->second.fd >= 0 && found->second.other == nullptr) shared().bytes -= found->second.bytes;
  shared().blocks.erase(found);
  return 0;
}

struct Handle {
  std::uint64_t words[8];
};

int copy(void* to, const void* from, std::size_t bytes, void* stream) {
  stream_of(stream).push([=] { std::memmove(to, from, bytes); });
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int standin_calls(const char* name) {
  const std::lock_guard guard(shared().mutex);
  return shared().calls[name];
}

extern "C" __attribute__((visibility("default"))) std::size_t standin_most_bytes() {
  const std::lock_guard guard(shared().mutex);
  return std::exchange(shared().most_bytes, shared().bytes);
}

extern "C" __attribute__((visibility("default"))) int standin_freed_while_mapped() {
  const std::lock_guard guard(shared().mutex);
  return shared().freed_while_mapped;
}

STANDIN(cuInit, hipInit)(unsigned /*flags*/) {
  CALLED(__func__);
  return number_from("STANDIN_CARDS", 2) == 0 ? 100 : 0;
}
STANDIN(cuDriverGetVersion, hipDriverGetVersion)(int* version) {
  CALLED(__func__);
  *version = number_from("STANDIN_VERSION", is_hip ? 60443482 : 12080);
  return 0;
}
#ifdef STANDIN_HIP
extern "C" __attribute__((visibility("default"))) const char* hipGetErrorName(int code) {
  return code == injected ? "hipErrorUnknown" : code == no_binary_for_card ? "hipErrorNoBinaryForGpu" : "hipErrorOther";
}
extern "C" __attribute__((visibility("default"))) int hipGetDevice(int* card) {
  CALLED(__func__);
  *card = current;
  return 0;
}
extern "C" __attribute__((visibility("default"))) int hipSetDevice(int card) {
  CALLED(__func__);
  current = card;
  return 0;
}
#else
extern "C" __attribute__((visibility("default"))) int cuGetErrorName(int code, const char** name) {
  *name = code == injected             ? "CUDA_ERROR_UNKNOWN"
          : code == no_binary_for_card ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
                                       : "CUDA_ERROR_OTHER";
  return 0;
}
STANDIN(cuDevicePrimaryCtxRetain, )(void** context, int card) {
  CALLED(__func__);
  *context = reinterpret_cast<void*>(static_cast<std::intptr_t>(card) + 1);
  return 0;
}
STANDIN(cuCtxPushCurrent_v2, )(void* context) {
  CALLED(__func__);
  before.push_back(current);
  current = static_cast<int>(reinterpret_cast<std::intptr_t>(context)) - 1;
  return 0;
}
STANDIN(cuCtxPopCurrent_v2, )(void** /*context*/) {
  CALLED(__func__);
  if (before.empty()) return invalid_context;
  current = before.back();
  before.pop_back();
  return 0;
}
STANDIN(cuFuncSetAttribute, )(void* /*function*/, int attribute, int value) {
  CALLED_ON_CARD(__func__);
  return attribute == 8 && value <= (227 << 10) ? 0 : invalid_value;
}
#endif
STANDIN(cuDeviceGetCount, hipGetDeviceCount)(int* count) {
  CALLED(__func__);
  *count = number_from("STANDIN_CARDS", 2);
  return 0;
}
STANDIN(cuDeviceGet, hipDeviceGet)(int* card, int index) {
  CALLED(__func__);
  *card = index;
  return 0;
}
STANDIN(cuDeviceGetName, hipDeviceGetName)(char* name, int size, int /*card*/) {
  CALLED(__func__);
  std::snprintf(name, static_cast<std::size_t>(size), "stand-in");
  return 0;
}
STANDIN(cuDeviceTotalMem_v2, hipDeviceTotalMem)(std::size_t* bytes, int /*card*/) {
  CALLED(__func__);
  *bytes = std::size_t{1} << 30U;
  return 0;
}
STANDIN(cuDeviceGetAttribute, hipDeviceGetAttribute)(int* value, int attribute, int /*card*/) {
  CALLED(__func__);
  const int arch = number_from("STANDIN_ARCH", 90);
  if (attribute == (is_hip ? 63 : 16)) {
    *value = 8;
  } else if (!is_hip && attribute == 75) {
    *value = arch / 10;
  } else if (!is_hip && attribute == 76) {
    *value = arch % 10;
  } else {
    return invalid_value;
  }
  return 0;
}

STANDIN(cuMemAlloc_v2, hipMalloc)(void** at, std::size_t bytes) {
  CALLED_ON_CARD(__func__);
  return allocate(at, bytes, false);
}
#ifdef STANDIN_HIP
STANDIN(, hipExtMallocWithFlags)(void** at, std::size_t bytes, unsigned flags) {
  CALLED_ON_CARD(__func__);
  return flags == 3 ? allocate(at, bytes, false) : invalid_value;
}
#endif
STANDIN(cuMemFree_v2, hipFree)(void* at) {
  CALLED_ON_CARD(__func__);
  return release(at);
}
STANDIN(cuMemGetInfo_v2, hipMemGetInfo)(std::size_t* free, std::size_t* total) {
  CALLED_ON_CARD(__func__);
  *free = *total = std::size_t{1} << 30U;
  const std::lock_guard guard(shared().mutex);
  for (const auto& [at, block] : shared().blocks) *free -= std::min(block.card == current ? block.bytes : 0, *free);
  return 0;
}
STANDIN(cuMemHostAlloc, hipHostMalloc)(void** at, std::size_t bytes, unsigned /*flags*/) {
  CALLED_ON_CARD(__func__);
  return allocate(at, bytes, true);
}
STANDIN(cuMemFreeHost, hipHostFree)(void* at) {
  CALLED_ON_CARD(__func__);
  return release(at);
}
STANDIN(cuMemHostGetDevicePointer_v2, hipHostGetDevicePointer)(void** on_device, void* at, unsigned /*flags*/) {
  CALLED_ON_CARD(__func__);
  const std::lock_guard guard(shared().mutex);
  *on_device = shared().blocks.at(static_cast<char*>(at)).other;
  return 0;
}
STANDIN(cuPointerGetAttribute, hipPointerGetAttribute)(void* value, int attribute, const void* address) {
  CALLED(__func__);
  const std::lock_guard guard(shared().mutex);
  const char* const at = static_cast<const char*>(address);
  auto found = shared().blocks.upper_bound(const_cast<char*>(at));
  if (attribute != 9 || found == shared().blocks.begin()) return invalid_value;
  --found;
  if (at >= found->first + found->second.bytes) return invalid_value;
  std::memcpy(value, &found->second.card, sizeof(int));
  return 0;
}
STANDIN(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)(void* to, const void* from, std::size_t bytes, void* stream) {
  CALLED_ON_CARD(__func__);
  return copy(to, from, bytes, stream);
}
STANDIN(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void* to, const void* from, std::size_t bytes, void* stream) {
  CALLED_ON_CARD(__func__);
  return copy(to, from, bytes, stream);
}
STANDIN(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(void* to, const void* from, std::size_t bytes, void* stream) {
  CALLED_ON_CARD(__func__);
  return copy(to, from, bytes, stream);
}
STANDIN(cuMemsetD8Async, hipMemsetD8Async)(void* to, unsigned char value, std::size_t bytes, void* stream) {
  CALLED_ON_CARD(__func__);
  stream_of(stream).push([=] { std::memset(to, value, bytes); });
  return 0;
}

STANDIN(cuIpcGetMemHandle, hipIpcGetMemHandle)(Handle* handle, void* at) {
  CALLED_ON_CARD(__func__);
  const std::lock_guard guard(shared().mutex);
  const auto found = shared().blocks.find(static_cast<char*>(at));
  if (found == shared().blocks.end()) return invalid_value;
  *handle = {
      {magic, static_cast<std::uint64_t>(getpid()), static_cast<std::uint64_t>(found->second.fd), found->second.bytes}};
  return 0;
}
STANDIN(cuIpcOpenMemHandle_v2, hipIpcOpenMemHandle)(void** at, Handle handle, unsigned /*flags*/) {
  CALLED_ON_CARD(__func__);
  if (handle.words[0] != magic) return invalid_value;
  if (static_cast<pid_t>(handle.words[1]) == getpid()) return invalid_context;  // as the real ones
  const std::string path = "/proc/" + std::to_string(handle.words[1]) + "/fd/" + std::to_string(handle.words[2]);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return invalid_value;
  char* const found = map_file(fd, handle.words[3]);
  close(fd);
  if (found == nullptr) return out_of_memory;
  __atomic_fetch_add(mappings_of(found, handle.words[3]), 1, __ATOMIC_ACQ_REL);
  const std::lock_guard guard(shared().mutex);
  shared().blocks[found] = {-1, handle.words[3], -2, nullptr};
  *at = found;
  return 0;
}
STANDIN(cuIpcCloseMemHandle, hipIpcCloseMemHandle)(void* at) {
  CALLED_ON_CARD(__func__);
  return release(at);
}

STANDIN(cuStreamCreate, hipStreamCreateWithFlags)(void** stream, unsigned /*flags*/) {
  CALLED_ON_CARD(__func__);
  *stream = new Stream;
  return 0;
}
STANDIN(cuStreamDestroy_v2, hipStreamDestroy)(void* stream) {
  CALLED_ON_CARD(__func__);
  delete static_cast<Stream*>(stream);
  return 0;
}
STANDIN(cuStreamSynchronize, hipStreamSynchronize)(void* stream) {
  CALLED_OUTSIDE_GRAPHS(__func__, stream);
  stream_of(stream).drain();
  return 0;
}
STANDIN(cuCtxSynchronize, hipDeviceSynchronize)() {
  CALLED_ON_CARD(__func__);
  Stream::drain_all();
  return 0;
}
STANDIN(cuStreamQuery, hipStreamQuery)(void* stream) {
  CALLED_OUTSIDE_GRAPHS(__func__, stream);
  return stream_of(stream).is_done() ? 0 : not_ready;
}
STANDIN(cuStreamIsCapturing, hipStreamIsCapturing)(void* stream, int* status) {
  CALLED_ON_CARD(__func__);
  *status = stream_of(stream).is_capturing() ? 1 : 0;
  return 0;
}
// What tests call: a graph needs no instance.
STANDIN(cuStreamBeginCapture_v2, hipStreamBeginCapture)(void* stream, int /*mode*/) {
  CALLED(__func__);
  stream_of(stream).capture(true);
  return 0;
}
STANDIN(cuStreamEndCapture, hipStreamEndCapture)(void* stream, void** graph) {
  CALLED(__func__);
  *graph = new std::vector<std::function<void()>>(stream_of(stream).capture(false));
  return 0;
}
STANDIN(cuGraphLaunch, hipGraphLaunch)(void* graph, void* stream) {
  CALLED(__func__);
  for (const auto& work : *static_cast<std::vector<std::function<void()>>*>(graph)) stream_of(stream).push(work);
  return 0;
}
STANDIN(cuEventCreate, hipEventCreateWithFlags)(void** event, unsigned flags) {
  CALLED_ON_CARD(__func__);
  if (flags != 0 && flags != Event::without_time) return invalid_value;
  *event = new std::shared_ptr<Event>(std::make_shared<Event>(flags));
  return 0;
}
STANDIN(cuEventDestroy_v2, hipEventDestroy)(void* event) {
  CALLED_ON_CARD(__func__);
  delete static_cast<std::shared_ptr<Event>*>(event);
  return 0;
}
STANDIN(cuEventRecord, hipEventRecord)(void* event, void* stream) {
  CALLED_OUTSIDE_GRAPHS(__func__, stream);
  auto& place = *static_cast<std::shared_ptr<Event>*>(event);
  place = std::make_shared<Event>(place->flags);  // who waits for the event as it was does not wait for this
  stream_of(stream).push([event = place] {
    const std::lock_guard guard(event->mutex);
    event->done = true;
    event->at = std::chrono::steady_clock::now();
    event->changed.notify_all();
  });
  return 0;
}
STANDIN(cuStreamWaitEvent, hipStreamWaitEvent)(void* stream, void* event, unsigned /*flags*/) {
  CALLED_OUTSIDE_GRAPHS(__func__, stream);
  stream_of(stream).push([event = *static_cast<std::shared_ptr<Event>*>(event)] {
    std::unique_lock guard(event->mutex);
    event->changed.wait(guard, [&] { return event->done; });
  });
  return 0;
}
STANDIN(cuEventElapsedTime, hipEventElapsedTime)(float* milliseconds, void* begin, void* end) {
  CALLED_ON_CARD(__func__);
  Event& first = **static_cast<std::shared_ptr<Event>*>(begin);
  Event& last = **static_cast<std::shared_ptr<Event>*>(end);
  const std::scoped_lock guard(first.mutex, last.mutex);
  if ((first.flags | last.flags) != 0) return invalid_handle;
  if (!first.done || !last.done) return not_ready;
  *milliseconds = std::chrono::duration<float, std::milli>(last.at - first.at).count();
  return 0;
}

// An image of another kind of card is refused: PTX for a newer one, a cubin or a code object for another one.
STANDIN(cuModuleLoadData, hipModuleLoadData)(void** module, const void* image) {
  CALLED_ON_CARD(__func__);
  Elf64_Ehdr header;
  const char* const text = static_cast<const char*>(image);
  const int arch = number_from("STANDIN_ARCH", is_hip ? 0x4c : 90);
  if (std::memcmp(text, ELFMAG, SELFMAG) != 0) {
    const char* const target = std::strstr(text, ".target sm_");
    if (is_hip || target == nullptr || std::atoi(target + 11) > arch) return no_binary_for_card;
    *module = new Module{text, false};
    return 0;
  }
  std::memcpy(&header, image, sizeof header);
  if (header.e_machine != (is_hip ? 224 : EM_CUDA)) return no_binary_for_card;
  if (static_cast<int>(header.e_flags & 0xffU) != arch) return no_binary_for_card;
  *module = new Module{{text, header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize}, true};
  return 0;
}
STANDIN(cuModuleGetFunction, hipModuleGetFunction)(void** function, void* module, const char* name) {
  CALLED_ON_CARD(__func__);
  const auto& found = *static_cast<Module*>(module);
  const std::string sought = found.is_elf ? (is_hip ? std::string(name) + ".kd" : ".text." + std::string(name)) + '\0'
                                          : ".entry " + std::string(name) + "(";
  if (found.image.find(sought) == std::string::npos) return not_found;
  *function = new Function{name};
  return 0;
}
STANDIN(cuOccupancyMaxActiveBlocksPerMultiprocessor, hipModuleOccupancyMaxActiveBlocksPerMultiprocessor)
(int* groups, void* /*function*/, int /*threads*/, std::size_t /*shared*/) {
  CALLED_ON_CARD(__func__);
  *groups = 2;
  return 0;
}
STANDIN(cuLaunchKernel, hipModuleLaunchKernel)
(void* function, unsigned groups, unsigned groups_y, unsigned groups_z, unsigned threads, unsigned threads_y,
 unsigned threads_z, unsigned shared_bytes, void* stream, void** parameters, void** /*extra*/) {
  CALLED_ON_CARD(__func__);
  const std::string& name = static_cast<Function*>(function)->name;
  if (groups_y * groups_z * threads_y * threads_z != 1 || groups == 0 || threads == 0 || threads > 1024)
    return invalid_value;
  const onehop::device::Kernel& kernel = onehop::device::find_kernel(name);
  const onehop::device::Shape shape{groups, threads, shared_bytes};
  std::vector<onehop::device::Wide> arguments(kernel.argument_bytes / 16 + 1);
  std::memcpy(arguments.data(), parameters[0], kernel.argument_bytes);
  const char* const wrong = std::getenv("STANDIN_WRONG");
  if (wrong != nullptr && name == wrong) return 0;
  stream_of(stream).push([=, &kernel] {
    std::vector<onehop::device::Wide> memory(shape.shared_bytes / 16 + 1);
    for (std::uint32_t group = 0; group < shape.groups; ++group)
      kernel.run_group(shape, group, arguments.data(), reinterpret_cast<std::byte*>(memory.data()));
  });
  return 0;
}
// NOLINTEND
