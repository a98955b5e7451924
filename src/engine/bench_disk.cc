#include "engine/bench_disk.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "base/seconds.h"
#include "base/str_cat.h"
#include "base/system_error.h"

namespace stoker::engine {
namespace {

constexpr int64_t kMostBytes = 4 << 20;
constexpr int64_t kHugePage = 2 << 20;

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
/// On huge pages where the system gives them, as windows of a load are: a read into small ones is cut into hundreds of
/// segments, and a disk of 2.1 GB/s gave 1.0.
Block make_block(int64_t bytes) {
  const size_t size = static_cast<size_t>((bytes + kHugePage - 1) / kHugePage * kHugePage);
  auto* block = static_cast<std::byte*>(std::aligned_alloc(kHugePage, size));
  ::madvise(block, size, MADV_HUGEPAGE);
  std::memset(block, 0, size);
  return Block(block);
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
      return Error{ErrorCode::kIo, str_cat(options.path, ": a file of ", (bytes >> 20),
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

/// The finalizer of SplitMix64: any two numbers give unrelated ones.
uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

/// Where read number `i` of all begins.
int64_t place_of(int64_t i, int64_t bytes, int64_t file_bytes, uint64_t seed, const DiskOptions& options) {
  const int64_t in_run = std::max<int64_t>(1, options.run_bytes / bytes), n_runs = file_bytes / (in_run * bytes);
  if (n_runs < 1) return i % (file_bytes / bytes) * bytes;
  const uint64_t run = mix(seed + static_cast<uint64_t>(i / in_run)) % static_cast<uint64_t>(n_runs);
  return (static_cast<int64_t>(run) * in_run + i % in_run) * bytes;
}

/// `depth` threads that wait for their own read.
Result<DiskRead> measure(int fd, int64_t file_bytes, int64_t bytes, int depth, const DiskOptions& options) {
  const auto time = std::chrono::milliseconds(options.quick ? 5 : options.milliseconds);
  std::atomic<int64_t> n_reads{0}, next{0};
  std::atomic<int> error{0};
  const auto start = Clock::now();
  // Never the places of an earlier measurement, which something below may have kept.
  const auto seed = static_cast<uint64_t>(start.time_since_epoch().count());
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<size_t>(depth));
  for (int t = 0; t < depth; ++t) {
    threads.emplace_back([&] {
      const Block block = make_block(bytes);
      do {
        const int64_t at = place_of(next++, bytes, file_bytes, seed, options);
        const ssize_t n = ::pread(fd, block.get(), static_cast<size_t>(bytes), at);
        if (n != bytes) error = n < 0 ? errno : EIO;
        ++n_reads;
      } while (error == 0 && Clock::now() - start < time && !is_cancelled(options));
    });
  }
  threads.clear();  // waits for them
  const double seconds = seconds_since(start);
  if (error == EINVAL) return no_direct(options.path);
  if (error != 0) return Error{ErrorCode::kIo, str_cat(options.path, ": ", system_reason(error))};
  if (is_cancelled(options)) return Error{ErrorCode::kCancelled, "cancelled"};
  const double rate = static_cast<double>(n_reads) / seconds;
  return DiskRead{
      .bytes = bytes, .depth = depth, .bytes_per_second = rate * static_cast<double>(bytes), .reads_per_second = rate};
}

std::vector<int64_t> sizes_of(const DiskOptions& options) {
  if (options.quick) return {4096, 65536};
  return options.sizes;
}

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
    out.bytes = options.quick ? 2 * kMostBytes : int64_t{1} << 30;
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

uint64_t DiskOptions::steps() const { return sizes_of(*this).size() * depths.size(); }

Result<std::vector<DiskRead>> measure_disk(const DiskOptions& options) {
  Opened opened;
  STOKER_TRY_STATUS(open(options, opened));
  std::vector<DiskRead> reads;
  for (const int64_t bytes : sizes_of(options)) {
    for (const int depth : options.depths) {
      STOKER_TRY(DiskRead read, measure(opened.file.fd, opened.bytes, bytes, depth, options));
      reads.push_back(read);
      if (options.on_step) options.on_step();
    }
  }
  return reads;
}

}  // namespace stoker::engine
