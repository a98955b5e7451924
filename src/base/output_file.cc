#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/checked.h"
#include "base/memory_limit.h"
#include "base/str_cat.h"
#include "base/system_error.h"

namespace stoker {
namespace {

Error io_error(const std::string& path, const char* what) {
  return Error{ErrorCode::kIo, str_cat(path, ": ", what, ": ", system_reason(errno))};
}

/// Where `path` leads after all symbolic links, so that a rename replaces the file and not the link.
std::string target_of(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string out = resolved;
  std::free(resolved);
  return out;
}

/// The folder of `path` with its slash; empty: the current one.
std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

/// Makes the rename itself last. Some file systems cannot sync a folder; the bytes are safe then all the same.
void sync_folder_of(const std::string& target) {
  const std::string folder = folder_of(target);
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  ::close(fd);
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path) {
  OutputFile out;
  out.path_ = path;
  out.target_ = target_of(path);
  if (struct stat info; stat(out.target_.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return Error{ErrorCode::kIo, str_cat(path, ": is a directory, a file is wanted")};
    if (!S_ISREG(info.st_mode)) return Error{ErrorCode::kIo, str_cat(path, ": is a pipe or device, a file is wanted")};
    out.mode_ = info.st_mode & 07777;
  }
  static std::atomic<uint64_t> serial{0};
  const std::string temporary = str_cat(folder_of(out.target_), ".stoker-", getpid(), "-", serial.fetch_add(1), ".tmp");
  out.fd_ = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (out.fd_ < 0) return io_error(path, "cannot be written");
  out.temporary_ = temporary;
  return out;
}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  path_ = std::move(other.path_);
  target_ = std::move(other.target_);
  temporary_ = std::exchange(other.temporary_, "");
  fd_ = std::exchange(other.fd_, -1);
  direct_fd_ = std::exchange(other.direct_fd_, -1);
  mode_ = other.mode_;
  return *this;
}

void OutputFile::discard() {
  for (int* fd : {&fd_, &direct_fd_}) {
    if (*fd >= 0) ::close(*fd);
    *fd = -1;
  }
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
}

Status OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(path_, "writing failed");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return Ok{};
}

Status OutputFile::reserve(uint64_t bytes) {
  struct statvfs disk {};
  if (fstatvfs(fd_, &disk) == 0) {
    const uint64_t free = static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
    if (free < bytes) {
      return Error{ErrorCode::kIo, str_cat(path_, ": its disk has ", format_bytes(free), " free, ", format_bytes(bytes),
                                           " are needed: make room, or choose another disk")};
    }
  }
  // Where the file system cannot, the numbers above have to do.
  if (fallocate(fd_, 0, 0, static_cast<off_t>(bytes)) != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
    return io_error(path_, "making room for it failed");
  direct_fd_ = ::open(temporary_.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
  return Ok{};
}

Status OutputFile::write_all(int fd, uint64_t offset, std::string_view bytes) const {
  while (!bytes.empty()) {
    ssize_t n = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINVAL && fd != fd_) n = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(path_, "writing failed");
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return Ok{};
}

Status OutputFile::write_at(uint64_t offset, std::string_view bytes) const {
  const uint64_t address = reinterpret_cast<uintptr_t>(bytes.data());
  const uint64_t begin = round_up(offset, kDirect), end = (offset + bytes.size()) / kDirect * kDirect;
  if (direct_fd_ < 0 || (address - offset) % kDirect != 0 || begin >= end) return write_all(fd_, offset, bytes);
  // Pages of which this is a part go through the page cache, whoever writes the rest of them.
  STOKER_TRY_STATUS(write_all(fd_, offset, bytes.substr(0, begin - offset)));
  STOKER_TRY_STATUS(write_all(direct_fd_, begin, bytes.substr(begin - offset, end - begin)));
  return write_all(fd_, end, bytes.substr(end - offset));
}

Status OutputFile::set_size(uint64_t bytes) {
  if (ftruncate(fd_, static_cast<off_t>(bytes)) != 0) return io_error(path_, "writing failed");
  return Ok{};
}

Status OutputFile::commit() {
  if (mode_ != 0 && fchmod(fd_, mode_) != 0) return io_error(path_, "setting its permissions failed");
  if (fsync(fd_) != 0) return io_error(path_, "writing failed");
  if (rename(temporary_.c_str(), target_.c_str()) != 0) return io_error(path_, "cannot be replaced");
  temporary_.clear();
  sync_folder_of(target_);
  return Ok{};
}

}  // namespace stoker
