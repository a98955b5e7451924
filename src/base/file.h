#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace stoker {

/// A regular file open for reading. The size is taken once, when it is opened.
/// Threads: `read_at` from any thread.
class File {
 public:
  /// kNotFound, kIo (a directory, no permission …): the message names the path and the reason.
  static Result<File> open(const std::string& path);
  File(File&& other) noexcept { *this = std::move(other); }
  File& operator=(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  int fd() const { return fd_; }

  /// Reads exactly `out.size()` bytes. kCorrupt: the file ends before; kIo: the system's reason. Both name the place.
  Status read_at(uint64_t offset, std::span<std::byte> out) const;

  /// Tells the system that this range will be read soon: it begins to, and returns.
  void want_soon(uint64_t offset, uint64_t bytes) const;

  /// Tells the system that this range will not be read again, so that it leaves the page cache.
  void drop_cache(uint64_t offset, uint64_t bytes) const;

 private:
  File(std::string path, int fd, uint64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

/// A whole file mapped read-only. A file that shrinks while mapped kills the process that touches the lost part:
/// used for headers that are parsed at once, never for weights.
class Mapping {
 public:
  Mapping() = default;
  static Result<Mapping> map(const File& file);
  Mapping(Mapping&& other) noexcept { *this = std::move(other); }
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// The whole of a file, standard input for "-". At most `max_bytes`, otherwise kInvalidArgument.
Result<std::string> read_text(const std::string& path, uint64_t max_bytes);

/// Replaces `path` by `bytes` in one step: written beside it under a temporary name, synced, renamed.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace stoker
