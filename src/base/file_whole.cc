// Whole files at once: read_text and write_file of base/file.h.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "base/file.h"
#include "base/str_cat.h"
#include "base/system_error.h"

namespace stoker {
namespace {

/// A descriptor that closes itself; -1 is none.
struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd > STDIN_FILENO) ::close(fd);
  }
};

Error io_error(const std::string& path, const char* what, int number) {
  return Error{ErrorCode::kIo, str_cat(path, ": ", what, ": ", system_reason(number))};
}

Result<std::string> read_all(int fd, const std::string& name, uint64_t max_bytes) {
  constexpr size_t kStep = 64 << 10;
  max_bytes = std::min<uint64_t>(max_bytes, std::numeric_limits<uint64_t>::max() - 1);
  std::string out;
  size_t size = 0;
  while (true) {
    // One byte more than allowed is enough to see that there is too much.
    const auto step = static_cast<size_t>(std::min<uint64_t>(std::max(kStep, size), max_bytes - size + 1));
    out.resize(size + step);
    const ssize_t n = read(fd, out.data() + size, step);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(name, errno == EISDIR ? "a file is wanted" : "reading failed", errno);
    if (n == 0) break;
    size += static_cast<size_t>(n);
    if (size > max_bytes) {
      return Error{ErrorCode::kInvalidArgument,
                   str_cat(name, ": is longer than the ", max_bytes, " bytes allowed here")};
    }
  }
  out.resize(size);
  out.shrink_to_fit();
  return out;
}

Status write_all(int fd, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(path, "writing failed", errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return Ok{};
}

/// Where `path` leads after all symbolic links, so that a rename replaces the file and not the link.
std::string target_of(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string out = resolved;
  std::free(resolved);
  return out;
}

/// Writes, syncs and renames `temporary`, which `fd` has open, to `target`.
Status finish(int fd, const std::string& path, const std::string& temporary, const std::string& target, mode_t mode,
              std::string_view bytes) {
  STOKER_TRY_STATUS(write_all(fd, path, bytes));
  if (mode != 0 && fchmod(fd, mode) != 0) return io_error(path, "setting its permissions failed", errno);
  if (fsync(fd) != 0) return io_error(path, "writing failed", errno);
  if (rename(temporary.c_str(), target.c_str()) != 0) return io_error(path, "cannot be replaced", errno);
  return Ok{};
}

/// The folder of `path` with its slash; empty: the current one.
std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

/// Makes the rename itself last. Some file systems cannot sync a folder; the bytes are safe then all the same.
void sync_folder_of(const std::string& target) {
  const std::string folder = folder_of(target);
  const Descriptor descriptor{::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (descriptor.fd >= 0) fsync(descriptor.fd);
}

}  // namespace

Result<std::string> read_text(const std::string& path, uint64_t max_bytes) {
  if (path == "-") return read_all(STDIN_FILENO, "standard input", max_bytes);
  const Descriptor descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (descriptor.fd < 0) {
    const int number = errno;
    const bool missing = number == ENOENT || number == ENOTDIR;
    return Error{missing ? ErrorCode::kNotFound : ErrorCode::kIo,
                 str_cat(path, ": cannot be opened: ", system_reason(number))};
  }
  return read_all(descriptor.fd, path, max_bytes);
}

Status write_file(const std::string& path, std::string_view bytes) {
  const std::string target = target_of(path);
  mode_t mode = 0;
  if (struct stat info; stat(target.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return Error{ErrorCode::kIo, str_cat(path, ": is a directory, a file is wanted")};
    if (!S_ISREG(info.st_mode)) return Error{ErrorCode::kIo, str_cat(path, ": is a pipe or device, a file is wanted")};
    mode = info.st_mode & 07777;
  }
  static std::atomic<uint64_t> serial{0};
  const std::string temporary = str_cat(folder_of(target), ".stoker-", getpid(), "-", serial.fetch_add(1), ".tmp");
  const Descriptor descriptor{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  if (descriptor.fd < 0) return io_error(path, "cannot be written", errno);
  Status status = finish(descriptor.fd, path, temporary, target, mode, bytes);
  if (status) {
    sync_folder_of(target);
  } else {
    unlink(temporary.c_str());
  }
  return status;
}

}  // namespace stoker
