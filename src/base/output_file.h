#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace stoker {

/// A file that takes the place of another one, or of none, once it is whole: written beside it under a temporary name,
/// which is removed when `commit` is never reached.
/// Threads: one at a time, where nothing else is said.
class OutputFile {
 public:
  /// kIo: a directory, a pipe or a device, or a folder that cannot be written to.
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept { *this = std::move(other); }
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile() { discard(); }

  Status write(std::string_view bytes);

  /// For a large file of known size: makes room for it on the disk before anything is written, and lets write_at go
  /// past the page cache where it can. kIo: too little is free; the message has the numbers.
  Status reserve(uint64_t bytes);
  /// Writes at a place, which `write` does not heed. It is fast where offset and address are the same modulo kDirect.
  /// Threads: any, at once, for ranges that do not overlap.
  Status write_at(uint64_t offset, std::string_view bytes) const;
  static constexpr uint64_t kDirect = 4096;
  /// Cut there, or filled with zeros.
  Status set_size(uint64_t bytes);
  /// Syncs and renames. Nothing may be written afterwards.
  Status commit();

 private:
  OutputFile() = default;
  void discard();
  Status write_all(int fd, uint64_t offset, std::string_view bytes) const;

  std::string path_, target_, temporary_;  // As given; behind symbolic links; where it is written.
  int fd_ = -1;
  int direct_fd_ = -1;  // The same file past the page cache; -1: no such thing here.
  uint32_t mode_ = 0;   // Permissions of the file that it replaces; 0: there is none.
};

}  // namespace stoker
