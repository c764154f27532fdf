#include "tests/device/standin/standin.h"

#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "src/device/kernels.h"

namespace onehop::testing {
namespace {

// Another name of the same file, so that its driver is loaded again.
std::string new_name_of(const std::string& path) {
  static std::atomic<int> made{0};
  const std::size_t slash = path.rfind('/');
  std::string found = path.substr(0, slash);
  for (int i = ++made; i > 0; --i) found += "/.";
  return found + path.substr(slash);
}

std::string write_image(device::Kind kind, const std::string& form, int arch, bool has_q8) {
  const bool hip = kind == device::Kind::hip;
  if (arch == 0) arch = hip ? 0x4c : 90;
  std::string names;
  for (const device::Kernel& kernel : device::kernels()) {
    const std::string name(kernel.name);
    if (!has_q8 && name.ends_with("_q8")) continue;
    if (form == "ptx") {
      names += ".visible .entry " + name + "(\n";
    } else {
      names += (hip ? name + ".kd" : ".text." + name) + '\0';
    }
  }
  std::string image = ".version 7.0\n.target sm_" + std::to_string(arch) + "\n" + names;
  if (form != "ptx") {
    Elf64_Ehdr header{};
    std::memcpy(&header, ELFMAG, SELFMAG);
    header.e_machine = hip ? 224 : EM_CUDA;
    header.e_flags = static_cast<Elf64_Word>(arch);
    header.e_shoff = sizeof header + names.size();
    image = std::string(reinterpret_cast<const char*>(&header), sizeof header) + names;
  }
  std::string path = ::testing::TempDir() + "onehop-image-XXXXXX";
  const int fd = mkstemp(path.data());
  if (fd >= 0) close(fd);
  std::ofstream(path, std::ios::binary) << image;
  return path;
}

}  // namespace

Variable::Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
Variable::~Variable() { unsetenv(name_); }

StandIn::StandIn(device::Kind kind, const std::string& form, int arch, bool has_q8)
    : library_(new_name_of(kind == device::Kind::cuda ? STANDIN_cuda : STANDIN_hip)),
      image_(write_image(kind, form, arch, has_q8)),
      driver_(kind == device::Kind::cuda ? "ONEHOP_CUDA" : "ONEHOP_HIP", library_),
      image_file_("ONEHOP_DEVICE_IMAGE", image_) {}

StandIn::~StandIn() { unlink(image_.c_str()); }

void* StandIn::symbol(const char* name) const {
  void* const library = dlopen(library_.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* const found = dlsym(library, name);
  dlclose(library);  // onehop keeps it
  return found;
}

int StandIn::calls(const char* function) const {
  const auto count = reinterpret_cast<int (*)(const char*)>(symbol("standin_calls"));
  return count == nullptr ? -1 : count(function);
}

int StandIn::freed_while_mapped() const { return reinterpret_cast<int (*)()>(symbol("standin_freed_while_mapped"))(); }

std::size_t StandIn::most_bytes() const { return reinterpret_cast<std::size_t (*)()>(symbol("standin_most_bytes"))(); }

}  // namespace onehop::testing
