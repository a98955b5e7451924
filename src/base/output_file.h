#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace stoker {

/// A file that takes the place of another one, or of none, once it is whole: written beside it under a temporary name,
/// which is removed when `commit` is never reached.
/// Threads: one at a time.
class OutputFile {
 public:
  /// kIo: a directory, a pipe or a device, or a folder that cannot be written to.
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept { *this = std::move(other); }
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile() { discard(); }

  Status write(std::string_view bytes);
  /// Syncs and renames. Nothing may be written afterwards.
  Status commit();

 private:
  OutputFile() = default;
  void discard();

  std::string path_, target_, temporary_;  // As given; behind symbolic links; where it is written.
  int fd_ = -1;
  uint32_t mode_ = 0;  // Permissions of the file that it replaces; 0: there is none.
};

}  // namespace stoker
