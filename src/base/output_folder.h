// The folder of an output. It is opened one step at a time, and each link is judged before it is followed, as
// python/onehop/place.py does: another user must not lead this one to another folder, now or later.
#pragma once

#include <filesystem>
#include <string>

namespace onehop::detail {

class OutputFolder {
 public:
  OutputFolder() = default;
  // Throws BadInput if it cannot be opened, or if another user may have put a link on the way there.
  explicit OutputFolder(const std::filesystem::path& path);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder& operator=(OutputFolder&& other) noexcept;

  // A path of `name` in this folder, wherever the folder is moved.
  [[nodiscard]] std::string file(const std::string& name) const;

 private:
  int descriptor_ = -1;
};

}  // namespace onehop::detail
