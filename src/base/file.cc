#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/checked.h"
#include "base/str_cat.h"
#include "base/system_error.h"

namespace stoker {
namespace {

Error open_error(const std::string& path, int number) {
  const bool missing = number == ENOENT || number == ENOTDIR;
  return Error{missing ? ErrorCode::kNotFound : ErrorCode::kIo,
               str_cat(path, ": cannot be opened: ", system_reason(number))};
}

Error too_short(const File& file, uint64_t offset, uint64_t wanted, uint64_t end) {
  return Error{ErrorCode::kCorrupt,
               str_cat(file.path(), ": wanted ", wanted, " bytes at ", offset, ", the file ends at ", end,
                       end == file.size() ? "" : "; it was cut short while in use")};
}

uint64_t current_size(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

}  // namespace

Result<File> File::open(const std::string& path) {
  // Without O_NONBLOCK a FIFO would block here until somebody writes to it.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return open_error(path, errno);
  File file(path, fd, 0);
  struct stat info;
  if (fstat(fd, &info) != 0) return Error{ErrorCode::kIo, str_cat(path, ": ", system_reason(errno))};
  if (S_ISDIR(info.st_mode)) return Error{ErrorCode::kIo, str_cat(path, ": is a directory, a file is wanted")};
  if (!S_ISREG(info.st_mode)) return Error{ErrorCode::kIo, str_cat(path, ": is a pipe or device, a file is wanted")};
  // io_uring would answer EAGAIN instead of waiting for the disk.
  if (fcntl(fd, F_SETFL, 0) != 0) return Error{ErrorCode::kIo, str_cat(path, ": ", system_reason(errno))};
  file.size_ = static_cast<uint64_t>(info.st_size);
  return file;
}

File& File::operator=(File&& other) noexcept {
  if (this == &other) return *this;
  if (fd_ >= 0) ::close(fd_);
  path_ = std::move(other.path_);
  fd_ = std::exchange(other.fd_, -1);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

Status File::read_at(uint64_t offset, std::span<std::byte> out) const {
  const std::optional<uint64_t> end = checked_add<uint64_t>(offset, out.size());
  if (!end || *end > size_) return too_short(*this, offset, out.size(), size_);
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (n == 0) {
      return too_short(*this, offset, out.size(), current_size(fd_));
    } else if (errno != EINTR) {
      return Error{ErrorCode::kIo,
                   str_cat(path_, ": reading ", out.size(), " bytes at ", offset, " failed: ", system_reason(errno))};
    }
  }
  return Ok{};
}

void File::want_soon(uint64_t offset, uint64_t bytes) const {
  if (bytes == 0) return;  // which would mean all the rest
  posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
}

void File::drop_cache(uint64_t offset, uint64_t bytes) const {
  posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
}

Result<Mapping> Mapping::map(const File& file) {
  Mapping mapping;
  if (file.size() == 0) return mapping;
  if (const uint64_t now = current_size(file.fd()); now < file.size()) return too_short(file, 0, file.size(), now);
  void* start = mmap(nullptr, file.size(), PROT_READ, MAP_PRIVATE, file.fd(), 0);
  if (start == MAP_FAILED) {
    return Error{ErrorCode::kIo, str_cat(file.path(), ": cannot be mapped: ", system_reason(errno))};
  }
  mapping.data_ = static_cast<const std::byte*>(start);
  mapping.size_ = file.size();
  return mapping;
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this == &other) return *this;
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace stoker
