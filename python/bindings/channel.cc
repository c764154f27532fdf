#include "onehop/channel.h"

#include <nanobind/ndarray.h>

#include <memory>
#include <utility>

#include "python/bindings/bindings.h"
#include "python/bindings/memory.h"

using onehop::ChannelSpec;
using onehop::Receiver;
using onehop::Sender;

namespace {

// A message this long is copied with the GIL released.
constexpr std::int64_t long_message = 32 << 10;

// The slots of a channel as NumPy arrays, made when a slot is first used and kept.
template <class Byte, class... Config>
class Views {
 public:
  // `shaper` converts an array of bytes to the array that the user gets; None: no conversion.
  explicit Views(nb::object shaper) : shaper_(std::move(shaper)) {}

  template <class Owner>
  nb::object at(std::span<Byte> slot, const Owner& owner) {
    for (const auto& [data, view] : views_) {
      if (data == slot.data()) return view;
    }
    auto* held = new Owner(owner);
    const nb::capsule keeper(held, [](void* p) noexcept { delete static_cast<Owner*>(p); });
    const nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>, Config...> bytes(
        reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(slot.data())), {slot.size()}, keeper);
    nb::object view = nb::cast(bytes, nb::rv_policy::reference);
    if (!shaper_.is_none()) view = shaper_(view);
    views_.emplace_back(slot.data(), view);
    return view;
  }

 private:
  nb::object shaper_;
  std::vector<std::pair<const std::byte*, nb::object>> views_;
};

struct SenderEnd {
  Sender end;
  Views<std::byte> views;
};
struct ReceiverEnd {
  Receiver end;
  Views<const std::byte, nb::ro> views;
};

nb::object slot(SenderEnd& self) {
  if (!self.end.ready()) {
    const nb::gil_scoped_release released;
    self.end.wait_released();
  }
  return self.views.at(self.end.slot(), self.end);
}

void put(SenderEnd& self, const std::optional<nb::object>& message) {
  if (!message) {
    self.end.put();
    return;
  }
  const Memory memory(*message, false, "the message");
  if (self.end.bytes() < long_message && self.end.ready()) {
    self.end.put(memory.bytes());
  } else {
    const nb::gil_scoped_release released;
    self.end.put(memory.bytes());
  }
}

nb::object wait(ReceiverEnd& self) {
  if (!self.end.ready()) {
    const nb::gil_scoped_release released;
    (void)self.end.wait();
  }
  return self.views.at(self.end.wait(), self.end);
}

void get(ReceiverEnd& self, nb::handle array) {
  const Memory memory(array, true, "the array to receive into");
  if (self.end.bytes() < long_message && self.end.ready()) {
    self.end.get(memory.bytes());
  } else {
    const nb::gil_scoped_release released;
    self.end.get(memory.bytes());
  }
}

// Returns the ends in the order of the specs. There is one shaper per spec.
nb::list open_channels(const onehop::Group& group, const std::vector<ChannelSpec>& specs, const nb::list& shapers,
                       const std::string& transport) {
  const auto kind = transport_for(group, transport);
  onehop::Channels channels;
  {
    const nb::gil_scoped_release released;
    channels = onehop::open_channels(group, specs, kind);
  }
  nb::list ends;
  std::size_t sender = 0;
  std::size_t receiver = 0;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const nb::object shaper = nb::borrow(shapers[i]);
    if (specs[i].direction == ChannelSpec::Direction::send) {
      ends.append(nb::cast(SenderEnd{std::move(channels.senders.at(sender++)), Views<std::byte>(shaper)}));
    } else {
      ends.append(
          nb::cast(ReceiverEnd{std::move(channels.receivers.at(receiver++)), Views<const std::byte, nb::ro>(shaper)}));
    }
  }
  return ends;
}

}  // namespace

onehop::TransportKind transport_for(const onehop::Group& group, const std::string& name) {
  try {
    return onehop::transport_from_string(name);
  } catch (const onehop::Error& error) {
    const nb::gil_scoped_release released;
    onehop::refuse_channels(group, error.what());
    throw;
  }
}

void bind_channel(nb::module_& module) {
  nb::class_<ChannelSpec>(
      module, "ChannelSpec",
      "One end of a channel, as a rank requests it: whether it sends, the rank at the other end, and the bytes of a "
      "message. The sender's numbers of slots and bytes count (0: onehop chooses); the signature, which identifies the "
      "meaning of the messages, is that of the other end.")
      .def(
          "__init__",
          [](ChannelSpec* self, bool send, int peer, std::int64_t bytes, int tag, int slots, std::int64_t slot_bytes,
             std::int64_t chunk_bytes, std::uint64_t signature) {
            const auto direction = send ? ChannelSpec::Direction::send : ChannelSpec::Direction::receive;
            new (self) ChannelSpec{direction, peer, bytes, tag, slots, slot_bytes, chunk_bytes, signature};
          },
          "send"_a, "peer"_a, "bytes"_a, "tag"_a = 0, "slots"_a = 0, "slot_bytes"_a = 0, "chunk_bytes"_a = 0,
          "signature"_a = 0);

  module.def(
      "carrier",
      [](const onehop::Group& group, int rank, const std::string& transport) {
        return onehop::carrier(group, rank, onehop::transport_from_string(transport));
      },
      "group"_a, "rank"_a, "transport"_a,
      "Say what carries messages to a rank over a transport: `shared_memory`, `mpi`, `ucx: active messages over ...`.");
  nb::class_<SenderEnd>(module, "Sender", "The sending end of a channel. Only one thread at a time may use it.")
      .def_prop_ro(
          "bytes", [](const SenderEnd& s) { return s.end.bytes(); }, "Bytes of one message.")
      .def_prop_ro(
          "peer", [](const SenderEnd& s) { return s.end.peer(); }, "The rank at the other end.")
      .def_prop_ro(
          "in_place", [](const SenderEnd& s) { return s.end.in_place(); },
          "Whether a whole message fits into a slot, so that `slot` can be used.")
      .def_prop_ro(
          "ready", [](SenderEnd& s) { return s.end.ready(); }, "Whether the next slot is free.")
      .def("slot", &slot, nb::sig("def slot(self) -> numpy.ndarray"),
           "Wait until the next slot is free; return its memory. Write the message there, then call `put`.")
      .def("put", &put, nb::sig("def put(self, message: typing.Any = None) -> None"), "message"_a = nb::none(),
           "Send the message that was written into `slot()`, or a copy of `message`.");

  nb::class_<ReceiverEnd>(module, "Receiver", "The receiving end of a channel. Only one thread at a time may use it.")
      .def_prop_ro(
          "bytes", [](const ReceiverEnd& r) { return r.end.bytes(); }, "Bytes of one message.")
      .def_prop_ro(
          "peer", [](const ReceiverEnd& r) { return r.end.peer(); }, "The rank at the other end.")
      .def_prop_ro(
          "in_place", [](const ReceiverEnd& r) { return r.end.in_place(); },
          "Whether a whole message fits into a slot, so that `wait` can be used.")
      .def_prop_ro(
          "ready", [](const ReceiverEnd& r) { return r.end.ready(); }, "Whether the next message has arrived.")
      .def("wait", &wait, nb::sig("def wait(self) -> numpy.ndarray"),
           "Wait for the next message; return a read-only view of it, which is valid until `release`.")
      .def(
          "release", [](ReceiverEnd& r) { r.end.release(); }, "Return the slot to the sender.")
      .def("get", &get, nb::sig("def get(self, array: typing.Any) -> None"), "array"_a,
           "Wait for the next message, copy it into `array` and release its slot.");

  module.def(
      "open_channels", &open_channels, "group"_a, "specs"_a, "shapers"_a, "transport"_a,
      "Open channels between the ranks of a group, and return the ends in the order of the specs. Collective. A shaper "
      "converts an array of bytes to the array that the user gets; None: no conversion.");
  module.def(
      "refuse_channels", &onehop::refuse_channels, "group"_a, "why"_a, nb::call_guard<nb::gil_scoped_release>(),
      "Take part in a collective `open_channels`, or construction of a plan, that this rank cannot complete. The "
      "other ranks raise Error with the text `why`.");
}
