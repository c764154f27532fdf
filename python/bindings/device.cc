#include "src/device/device.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>

#include "collectives/device_plan.h"
#include "collectives/device_reduce.h"
#include "python/bindings/bindings.h"
#include "python/bindings/memory.h"
#include "src/device/images.h"
#include "src/device/self_test.h"

using onehop::collectives::DevicePlan;
using onehop::collectives::DeviceReduce;
using onehop::device::Device;
using onehop::device::Stream;

namespace {

onehop::device::Kind kind_from(const std::string& name) {
  for (const auto kind : {onehop::device::Kind::processor, onehop::device::Kind::cuda, onehop::device::Kind::hip})
    if (name == name_of(kind)) return kind;
  throw onehop::BadInput("expected a kind of device as processor, cuda or hip, found '" + name + "'");
}

Stream stream_at(std::uintptr_t native) { return Device::wrap(reinterpret_cast<void*>(native)); }

onehop::collectives::Reduction reduction(std::int64_t elements, const std::string& type, const std::string& op,
                                         const std::string& codec) {
  return {.elements = elements,
          .type = onehop::element_type_from_string(type),
          .op = onehop::collectives::reduce_op_from_string(op),
          .codec = onehop::codec_from_string(codec)};
}

}  // namespace

void bind_device(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  using DeviceMemory = onehop::device::Memory;
  module.def(
      "device_count",
      [](const std::string& kind) {
        std::string reason;
        const int found = Device::count(kind_from(kind), reason);
        return std::pair(found, reason);
      },
      "kind"_a, release(), "The number of devices of a kind, and why there is none.");
  module.def(
      "device_holder",
      [](const std::string& kind, std::uintptr_t address) {
        return Device::holder(kind_from(kind), reinterpret_cast<const void*>(address));
      },
      "kind"_a, "address"_a, release(), "The number of the card of a kind that holds an address; -1: none.");
  module.def(
      "device_images",
      [] {
        std::vector<std::string> names;
        for (const auto& image : onehop::device::images())
          names.push_back(std::string(image.target) + "." + std::string(image.form));
        return names;
      },
      "The images of kernels in this library, such as sm_80.ptx.");
  nb::class_<DeviceMemory>(module, "DeviceMemory", "Memory of a device.")
      .def_prop_ro("bytes", &DeviceMemory::bytes, "Size in bytes.")
      .def_prop_ro(
          "address", [](const DeviceMemory& memory) { return reinterpret_cast<std::uintptr_t>(memory.data()); },
          "Address, for the device.");
  nb::class_<Stream>(module, "DeviceStream", "A queue of work of a device.")
      .def_prop_ro(
          "native", [](const Stream& stream) { return reinterpret_cast<std::uintptr_t>(stream.native()); },
          "Its address, for the driver.");
  nb::class_<Device>(module, "Device", "A device that runs kernels: a card, or this processor for tests.")
      .def_static("named", &Device::named, "name"_a, release(), "The device of a name such as cuda, hip:1, processor.")
      .def_prop_ro(
          "kind", [](const Device& device) { return std::string(name_of(device.kind())); }, "processor, cuda or hip.")
      .def_prop_ro("index", &Device::index, "Its number.")
      .def_prop_ro("model", &Device::model, "Its name, by the driver.")
      .def_prop_ro("memory", &Device::memory, "Its memory in bytes.")
      .def("__str__", &Device::text)
      .def("free_memory", &Device::free_memory, release(), "Its free memory in bytes.")
      .def("allocate", &Device::allocate, "bytes"_a, release(), "Allocate memory, which is not zeroed.")
      .def("make_stream", &Device::make_stream, release(), "Make a stream.")
      .def(
          "follow_default",
          [](Device& device, std::uintptr_t stream) {
            onehop::device::Event event;
            device.record({}, event);
            device.wait(stream_at(stream), event);
          },
          "stream"_a, release(), "Let a stream wait for what is in the default stream.")
      .def(
          "copy_in",
          [](Device& device, std::uintptr_t to, const Memory& from, std::uintptr_t stream) {
            const nb::gil_scoped_release released;
            device.copy_in(stream_at(stream), reinterpret_cast<std::byte*>(to), from.bytes().data(),
                           static_cast<std::int64_t>(from.bytes().size()));
            device.synchronize(stream_at(stream));
          },
          "to"_a, "source"_a, "stream"_a = 0, "Copy an array of the processor to an address of the device, and wait.")
      .def(
          "copy_out",
          [](Device& device, const Memory& to, std::uintptr_t from, std::uintptr_t stream) {
            const nb::gil_scoped_release released;
            device.copy_out(stream_at(stream), to.bytes().data(), reinterpret_cast<const std::byte*>(from),
                            static_cast<std::int64_t>(to.bytes().size()));
            device.synchronize(stream_at(stream));
          },
          "target"_a, "source"_a, "stream"_a = 0, "Copy memory of the device to an array of the processor, and wait.")
      .def(
          "check",
          [](Device& device, bool quick) {
            std::vector<std::tuple<std::string, bool, std::string, std::string>> found;
            for (const auto& one : onehop::device::check_kernels(device, quick))
              found.emplace_back(one.name, one.error.empty(), one.against, one.error);
            return found;
          },
          "quick"_a, release(),
          "Compare the kernels with the processor's: name, whether equal, against what, what not.")
      .def(
          "rates",
          [](Device& device, std::int64_t bytes) {
            std::vector<std::tuple<std::string, double, double>> found;
            for (const auto& one : onehop::device::measure_kernels(device, bytes))
              found.emplace_back(one.name, one.value, one.limit);
            return found;
          },
          "bytes"_a, release(), "Bytes per second of the codecs, and of a copy as their limit.");
  nb::class_<DeviceReduce>(module, "DeviceReduce",
                           "Sums of arrays on the devices of the ranks of a host. Making one is collective.")
      .def(nb::init<const onehop::collectives::Collectives&, std::shared_ptr<Device>>(), "collectives"_a, "device"_a,
           release())
      .def(
          "run",
          [](DeviceReduce& self, std::uintptr_t stream, std::uintptr_t source, std::uintptr_t target,
             std::int64_t elements, const std::string& type, const std::string& op, const std::string& codec,
             int shots) {
            self.run(stream_at(stream), reinterpret_cast<const void*>(source), reinterpret_cast<void*>(target),
                     reduction(elements, type, op, codec), shots);
          },
          "stream"_a, "source"_a, "target"_a, "elements"_a, "type"_a, "op"_a = "sum", "codec"_a = "raw", "shots"_a = 0,
          release(), "Add the arrays of all ranks after what is in the stream; does not wait if a kernel does it.")
      .def(
          "wait", [](DeviceReduce& self, std::uintptr_t stream) { self.wait(stream_at(stream)); }, "stream"_a,
          release(), "Wait for the stream; raises PeerLost if a sum was ended because a rank is gone.")
      .def(
          "compress_above",
          [](const DeviceReduce& self, const std::string& codec) {
            return self.table().pays_from(onehop::codec_from_string(codec));
          },
          "codec"_a, "Bytes from which a sum of float32 is faster with this codec than raw, or None.")
      .def(
          "choose",
          [](const DeviceReduce& self, std::int64_t elements, const std::string& type, const std::string& op,
             const std::string& codec, int shots) {
            const auto choice = self.choose(reduction(elements, type, op, codec), shots);
            return std::tuple(choice.shots, choice.groups, choice.tiles, choice.reason);
          },
          "elements"_a, "type"_a, "op"_a = "sum", "codec"_a = "raw", "shots"_a = 0,
          "Shots (0: through the processor's memory), groups, tiles and why, without communication.");
  module.def(
      "device_tensor",
      [](nb::handle object) {
        nb::ndarray<> array;
        if (!nb::try_cast(object, array, false))
          throw onehop::BadInput("the array on a device hands out no memory to write to");
        nb::list shape;
        for (std::size_t d = 0; d < array.ndim(); ++d) shape.append(array.shape(d));
        return nb::make_tuple(array.device_type(), array.device_id(), reinterpret_cast<std::uintptr_t>(array.data()),
                              nb::tuple(shape), array.dtype().code, array.dtype().bits,
                              is_contiguous(nb::ndarray<nb::ro>(array)));
      },
      "array"_a,
      "What DLPack says: kind and number of the device, address, shape, code and bits of the type, no gaps.");
  module.def(
      "device_capsule",
      [](nb::handle memory, const std::vector<std::size_t>& shape, std::uint8_t code, std::uint8_t bits, int kind,
         int index) {
        const nb::dlpack::dtype type{code, bits, 1};
        return nb::ndarray<>(nb::cast<DeviceMemory&>(memory).data(), shape.size(), shape.data(), memory, nullptr, type,
                             kind, index);
      },
      "memory"_a, "shape"_a, "code"_a, "bits"_a, "kind"_a, "index"_a, "Memory of a device as a capsule of DLPack.");
  nb::class_<DevicePlan>(module, "DevicePlan",
                         "A schedule bound to a group and to arrays on devices; see `onehop.Plan`. Making one is "
                         "collective.")
      .def(
          "__init__",
          [](DevicePlan* self, const onehop::Group& group, const onehop::Schedule& schedule,
             std::shared_ptr<Device> device, const std::vector<std::pair<std::uintptr_t, std::int64_t>>& arrays,
             const std::string& error) {
            std::vector<onehop::collectives::DeviceArray> all;
            for (const auto& [address, bytes] : arrays) all.push_back({reinterpret_cast<std::byte*>(address), bytes});
            const nb::gil_scoped_release released;
            new (self) DevicePlan(group, schedule, std::move(device), all, error);
          },
          "group"_a, "schedule"_a, "device"_a, "arrays"_a, "error"_a = "")
      .def(
          "start", [](DevicePlan& self, std::uintptr_t stream) { self.start(stream_at(stream)); }, "stream"_a,
          release(), "Start a run after what is in the stream.")
      .def(
          "finish", [](DevicePlan& self, std::uintptr_t stream) { self.finish(stream_at(stream)); }, "stream"_a,
          release(), "Complete the run in the stream.")
      .def("wait", &DevicePlan::wait, release(), "Wait for the device, after the last run.")
      .def_prop_ro("counters", &DevicePlan::counters, "Messages and bytes moved so far.")
      .def_prop_ro("staging_bytes", &DevicePlan::staging_bytes, "Bytes of staging on this rank.")
      .def_prop_ro("groups", &DevicePlan::groups, "Groups of threads of a launch.")
      .def_prop_ro("reason", &DevicePlan::reason, "Why it goes through the processor's memory; empty: it does not.");
}
