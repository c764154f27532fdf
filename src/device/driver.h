// The functions of a card's driver that onehop calls: the driver interface of CUDA, or the HIP runtime, whose functions
// have the same parameters but for a few. Loaded at run time; nothing of either is needed to build onehop.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "src/device/device.h"

namespace onehop::device {

// The codes that both drivers share.
inline constexpr int no_such_card = 100;  // there is no card at all
inline constexpr int not_ready = 600;

template <class... Parameters>
struct Call {
  int (*function)(Parameters...) = nullptr;
  const char* name = "";
};

struct Driver {
  Kind kind = Kind::cuda;
  std::string path;

  Call<unsigned> init;
  Call<int*> version;
  Call<int*> count;
  Call<int*, int> get;
  Call<char*, int, int> model;
  Call<std::size_t*, int> total_memory;
  Call<int*, int, int> attribute;  // their numbers differ

  Call<void**, int> retain_context;  // CUDA only, as the next two
  Call<void*> push_context;
  Call<void**> pop_context;
  Call<int*> current_card;  // HIP only, as the next one
  Call<int> make_current;

  Call<void**, std::size_t> allocate;
  Call<void**, std::size_t, unsigned> allocate_uncached;  // HIP only
  Call<void*> free;
  Call<std::size_t*, std::size_t*> memory_info;
  Call<void**, std::size_t, unsigned> allocate_pinned;
  Call<void*> free_pinned;
  Call<void**, void*, unsigned> pinned_on_device;
  Call<void*, int, const void*> pointer_attribute;
  Call<void*, const void*, std::size_t, void*> copy_in;
  Call<void*, const void*, std::size_t, void*> copy_out;
  Call<void*, const void*, std::size_t, void*> copy;
  Call<void*, unsigned char, std::size_t, void*> fill;
  Call<MemoryHandle*, void*> handle;
  Call<void**, MemoryHandle, unsigned> map;
  Call<void*> unmap;

  Call<void**, unsigned> make_stream;
  Call<void*> destroy_stream;
  Call<void*> synchronize;
  Call<void*> query;
  Call<void**, unsigned> make_event;
  Call<void*> destroy_event;
  Call<void*, void*> record;
  Call<void*, void*, unsigned> wait;
  Call<float*, void*, void*> elapsed;

  Call<void**, const void*> load_module;
  Call<void**, void*, const char*> function;
  Call<void*, int, int> set_function_attribute;  // CUDA only
  Call<int*, void*, int, std::size_t> resident;
  Call<void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**> launch;

  [[nodiscard]] std::string error_name(int code) const;

  // Loads and initialises the driver, once. Null and a reason if it cannot be used: it is switched off or not found,
  // lacks a function, is too old, or has no card.
  [[nodiscard]] static const Driver* find(Kind kind, std::string& reason);

 private:
  int (*cuda_error_name_)(int, const char**) = nullptr;
  const char* (*hip_error_name_)(int) = nullptr;

  [[nodiscard]] std::string bind(void* library);
  [[nodiscard]] static std::unique_ptr<Driver> load(Kind kind, std::string& reason);
};

}  // namespace onehop::device
