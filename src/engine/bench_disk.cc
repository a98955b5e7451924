#include "engine/bench_disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "base/str_cat.h"
#include "base/system_error.h"

namespace stoker::engine {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kMostBytes = 4 * kMiB;
constexpr size_t kAlignment = 4096;

using Clock = std::chrono::steady_clock;

struct Descriptor {
  int fd = -1;
  explicit Descriptor(int opened = -1) : fd(opened) {}
  Descriptor(Descriptor&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Block = std::unique_ptr<std::byte, Free>;
Block make_block(int64_t bytes) {
  return Block(static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<size_t>(bytes))));
}

bool is_cancelled(const DiskOptions& options) {
  return options.cancel && options.cancel->load(std::memory_order_relaxed);
}

Error no_direct(const std::string& path) {
  return {ErrorCode::kUnsupported, str_cat(path, ": its file system has no direct reads (O_DIRECT); name another")};
}

/// Bytes that no drive can compress, written past the cache.
Status write_all(int fd, int64_t bytes, const DiskOptions& options) {
  const Block block = make_block(kMostBytes);
  std::mt19937_64 random(1);
  for (int64_t at = 0; at < bytes; at += kMostBytes) {
    if (is_cancelled(options)) return Error{ErrorCode::kCancelled, "cancelled"};
    auto* words = reinterpret_cast<uint64_t*>(block.get());
    std::generate(words, words + kMostBytes / 8, std::ref(random));
    const ssize_t n = ::pwrite(fd, block.get(), kMostBytes, at);
    if (n != kMostBytes) {
      return Error{ErrorCode::kIo, str_cat(options.path, ": a file of ", bytes / kMiB,
                                           " MiB cannot be written: ", system_reason(n < 0 ? errno : ENOSPC))};
    }
  }
  if (::fsync(fd) != 0) return Error{ErrorCode::kIo, str_cat(options.path, ": ", system_reason(errno))};
  return Ok{};
}

/// A file without a name: it is gone when the process is, however that ends.
Descriptor open_nameless(const std::string& folder) {
  Descriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600));
  if (file.fd >= 0 || errno != EOPNOTSUPP) return file;
  // This file system wants a name first.
  std::string name = folder + "/stoker-bench-XXXXXX";
  file = Descriptor(::mkostemp(name.data(), O_DIRECT | O_CLOEXEC));
  if (file.fd >= 0) ::unlink(name.c_str());
  return file;
}

Result<Descriptor> temporary(const DiskOptions& options, int64_t bytes) {
  Descriptor file = open_nameless(options.path);
  if (file.fd < 0 && errno == EINVAL) return no_direct(options.path);
  if (file.fd < 0) return Error{ErrorCode::kIo, str_cat(options.path, ": ", system_reason(errno))};
  STOKER_TRY_STATUS(write_all(file.fd, bytes, options));
  return file;
}

int64_t read_once(int fd, std::byte* block, int64_t bytes, uint64_t random, int64_t file_bytes) {
  const auto places = static_cast<uint64_t>(file_bytes / bytes);
  return ::pread(fd, block, static_cast<size_t>(bytes), static_cast<off_t>(random % places) * bytes);
}

/// `depth` threads that wait for their own read.
Result<DiskRead> measure(int fd, int64_t file_bytes, int64_t bytes, int depth, const DiskOptions& options) {
  const auto time = std::chrono::milliseconds(options.quick ? 5 : 500);
  std::atomic<int64_t> n_reads{0};
  std::atomic<int> error{0};
  const auto start = Clock::now();
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<size_t>(depth));
  for (int t = 0; t < depth; ++t) {
    threads.emplace_back([&, t] {
      const Block block = make_block(bytes);
      std::mt19937_64 random(static_cast<uint64_t>(t) + 1);
      do {
        const int64_t n = read_once(fd, block.get(), bytes, random(), file_bytes);
        if (n != bytes) error = n < 0 ? errno : EIO;
        ++n_reads;
      } while (error == 0 && Clock::now() - start < time && !is_cancelled(options));
    });
  }
  threads.clear();  // waits for them
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (error == EINVAL) return no_direct(options.path);
  if (error != 0) return Error{ErrorCode::kIo, str_cat(options.path, ": ", system_reason(error))};
  if (is_cancelled(options)) return Error{ErrorCode::kCancelled, "cancelled"};
  const double rate = static_cast<double>(n_reads) / seconds;
  return DiskRead{
      .bytes = bytes, .depth = depth, .bytes_per_second = rate * static_cast<double>(bytes), .reads_per_second = rate};
}

std::vector<int64_t> sizes_of(const DiskOptions& options) {
  if (options.quick) return {4096, 65536};
  return {4096, 16384, 65536, 262144, kMiB, kMostBytes};
}
constexpr int kDepths[] = {1, 4, 16};

struct Opened {
  Descriptor file;
  int64_t bytes = 0;
};

Status open(const DiskOptions& options, Opened& out) {
  struct stat info {};
  if (::stat(options.path.c_str(), &info) != 0) {
    return Error{errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                 str_cat(options.path, ": ", system_reason(errno))};
  }
  if (S_ISDIR(info.st_mode)) {
    out.bytes = options.quick ? 2 * kMostBytes : 1024 * kMiB;
    STOKER_TRY(out.file, temporary(options, out.bytes));
    return Ok{};
  }
  out.bytes = info.st_size;
  if (!S_ISREG(info.st_mode) || out.bytes < kMostBytes) {
    return Error{ErrorCode::kInvalidArgument,
                 str_cat(options.path, ": wanted a folder, or a file of 4 MiB and more (better, many times that)")};
  }
  out.file.fd = ::open(options.path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (out.file.fd < 0 && errno == EINVAL) return no_direct(options.path);
  if (out.file.fd < 0) return Error{ErrorCode::kIo, str_cat(options.path, ": ", system_reason(errno))};
  return Ok{};
}

}  // namespace

uint64_t DiskOptions::steps() const { return sizes_of(*this).size() * std::size(kDepths); }

Result<std::vector<DiskRead>> measure_disk(const DiskOptions& options) {
  Opened opened;
  STOKER_TRY_STATUS(open(options, opened));
  std::vector<DiskRead> reads;
  for (const int64_t bytes : sizes_of(options)) {
    for (const int depth : kDepths) {
      STOKER_TRY(DiskRead read, measure(opened.file.fd, opened.bytes, bytes, depth, options));
      reads.push_back(read);
      if (options.on_step) options.on_step();
    }
  }
  return reads;
}

}  // namespace stoker::engine
