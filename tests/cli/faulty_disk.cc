// Loaded before the C library (LD_PRELOAD): reads of the file FAULTY_FILE fail with FAULTY_ERRNO from byte FAULTY_FROM
// on, up to byte FAULTY_TO where that is given, and disks have FAULTY_FREE bytes free. With FAULTY_SHORT they only
// return at most 1000 bytes, and every third is interrupted.
#include <dlfcn.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using Pread = ssize_t (*)(int, void*, size_t, off_t);

bool is_faulty(int fd) {
  const char* name = std::getenv("FAULTY_FILE");
  char path[4096];
  const ssize_t n = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path - 1);
  return name != nullptr && n > 0 && std::string(path, static_cast<size_t>(n)) == name;
}

ssize_t faulty_pread(Pread real, int fd, void* out, size_t n, off_t at) {
  thread_local unsigned calls = 0;
  if (!is_faulty(fd)) return real(fd, out, n, at);
  if (std::getenv("FAULTY_SHORT") != nullptr) {
    if (++calls % 3 != 0) return real(fd, out, n < 1000 ? n : 1000, at);
    errno = EINTR;
    return -1;
  }
  const char* to = std::getenv("FAULTY_TO");
  const bool before = at + static_cast<off_t>(n) <= std::atoll(std::getenv("FAULTY_FROM"));
  if (before || (to != nullptr && at >= std::atoll(to))) return real(fd, out, n, at);
  errno = std::atoi(std::getenv("FAULTY_ERRNO"));
  return -1;
}

}  // namespace

extern "C" ssize_t pread(int fd, void* out, size_t n, off_t at) {
  return faulty_pread(reinterpret_cast<Pread>(dlsym(RTLD_NEXT, "pread")), fd, out, n, at);
}

extern "C" ssize_t pread64(int fd, void* out, size_t n, off_t at) {
  return faulty_pread(reinterpret_cast<Pread>(dlsym(RTLD_NEXT, "pread64")), fd, out, n, at);
}

extern "C" int fstatvfs(int fd, struct statvfs* out) {
  const int result = reinterpret_cast<int (*)(int, struct statvfs*)>(dlsym(RTLD_NEXT, "fstatvfs"))(fd, out);
  if (const char* free = std::getenv("FAULTY_FREE")) out->f_bavail = std::strtoull(free, nullptr, 10) / out->f_frsize;
  return result;
}
