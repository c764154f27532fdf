// QMP's text output: descriptions of status codes, lines that begin with the node's name, the time and the version.
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <utility>

#include "compat/qmp/state.h"

using namespace onehop::compat::qmp;

namespace {

int verbosity = 0;
int profiling = 0;

int print(const char* name, FILE* stream, const char* what, const char* format, va_list arguments) {
  onehop::compat::guarded(name, [&] {
    if (stream == nullptr || format == nullptr)
      throw onehop::BadInput("expected a stream and a format, found a null pointer");
  });
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  std::array<char, 1024> text{};
  const int length = std::vsnprintf(text.data(), text.size(), format, arguments);
  std::fprintf(stream, "QMP m%d,n%d@%s%s: %s\n", the_node, all_nodes, host.data(), what, text.data());
  return length;
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

ONEHOP_COMPAT_API const char* QMP_error_string(QMP_status_t code) {
  static constexpr std::array<const char*, QMP_MAX_STATUS - QMP_ERROR> texts{
      "an error",
      "message passing is not initialised",
      "the environment of the run is not set up",
      "nothing is known of the processor",
      "nothing is known of the node",
      "out of memory",
      "more is sent than is received into",
      "the node's name is unknown",
      "the service below could not be started",
      "there is a logical topology already",
      "connecting took too long",
      "not supported",
      "the service below is busy",
      "not a valid message",
      "not a valid argument",
      "not a valid topology",
      "nothing is known of the neighbours",
      "the memory is too large",
      "not a valid memory for a message",
      "no ports left",
      "there is no such node",
      "not a valid channel",
      "the receiving memory is in use",
      "not possible in this state",
      "took too long",
  };
  if (code == QMP_SUCCESS) return "success";
  if (code < QMP_ERROR || code >= QMP_MAX_STATUS) return "not a status of QMP";
  return texts[static_cast<std::size_t>(code - QMP_ERROR)];
}
// A call that fails ends the program, or returns its status itself.
ONEHOP_COMPAT_API QMP_status_t QMP_get_error_number(QMP_msghandle_t /*mh*/) { return QMP_SUCCESS; }
ONEHOP_COMPAT_API const char* QMP_get_error_string(QMP_msghandle_t mh) {
  return QMP_error_string(QMP_get_error_number(mh));
}
ONEHOP_COMPAT_API int QMP_verbose(int level) { return std::exchange(verbosity, level); }
ONEHOP_COMPAT_API int QMP_profcontrol(int level) { return std::exchange(profiling, level); }

// Defines a function that prints a line with the format and the arguments that follow its `parameters`.
#define QMP_PRINTS(name, parameters, stream, what)                    \
  ONEHOP_COMPAT_API int name parameters {                             \
    va_list arguments;                                                \
    va_start(arguments, format);                                      \
    const int length = print(#name, stream, what, format, arguments); \
    va_end(arguments);                                                \
    return length;                                                    \
  }
QMP_PRINTS(QMP_printf, (const char* format, ...), stdout, "")
QMP_PRINTS(QMP_fprintf, (FILE * stream, const char* format, ...), stream, "")
QMP_PRINTS(QMP_info, (const char* format, ...), stdout, " info")
QMP_PRINTS(QMP_error, (const char* format, ...), stderr, " error")
ONEHOP_COMPAT_API double QMP_time() { return now(); }
ONEHOP_COMPAT_API void QMP_reset_total_qmp_time() {}
ONEHOP_COMPAT_API double QMP_get_total_qmp_time() { return 0; }
ONEHOP_COMPAT_API const char* QMP_version_str() { return "2.5.4"; }
ONEHOP_COMPAT_API int QMP_version_int() { return 2'005'004; }
