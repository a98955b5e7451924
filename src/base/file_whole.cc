// Whole files at once: read_text and write_file of base/file.h.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/file.h"
#include "base/output_file.h"
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
  STOKER_TRY(OutputFile file, OutputFile::create(path));
  STOKER_TRY_STATUS(file.write(bytes));
  return file.commit();
}

}  // namespace stoker
