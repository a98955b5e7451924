#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/checked.h"
#include "base/file.h"
#include "base/result.h"

namespace stoker {

/// Reads parts of a file, each once. What the page cache holds is taken from there, unless said otherwise.
/// Threads: `read` from any thread, each with a window of its own.
class BulkReader {
 public:
  enum class Cache {
    kFill,   ///< The rest comes through the page cache and stays there for the next process.
    kSpare,  ///< The rest comes straight from the disk (O_DIRECT) and the page cache stays as it was.
    kPast,   ///< All comes from the disk. A small part in a cached page can have the kernel read megabytes ahead.
  };
  /// `file` must outlive it. Where the file system has no direct reads, kSpare and kPast read through the cache;
  /// kSpare drops what it caused there, kPast what it read.
  BulkReader(const File& file, Cache cache);
  BulkReader(BulkReader&& other) noexcept;
  BulkReader& operator=(BulkReader&&) = delete;
  ~BulkReader();

  static constexpr uint64_t kAlign = 4096;
  /// What a window for so many bytes takes: direct reads begin and end at multiples of kAlign.
  static constexpr uint64_t window_bytes(uint64_t bytes) { return round_up<uint64_t>(bytes, kAlign) + kAlign; }

  /// The bytes [offset, offset + bytes) of the file, in `window`, which is aligned to kAlign and of
  /// window_bytes(bytes). Errors as File::read_at.
  Result<std::span<std::byte>> read(uint64_t offset, uint64_t bytes, std::span<std::byte> window) const;

  /// Whether reads that miss the cache go to the disk directly.
  bool direct() const { return direct_fd_ >= 0; }

  /// The direct read of the same bytes: whole sectors from an aligned offset on, `lead` bytes before the first wanted
  /// one. The file may end inside the last sector.
  struct Direct {
    int fd = -1;
    uint64_t offset = 0, bytes = 0, lead = 0;
  };
  /// Nothing: `read` would go another way, since the cache has them, the file does not, or there are no direct reads.
  std::optional<Direct> direct_read(uint64_t offset, uint64_t bytes) const;

 private:
  bool cached(uint64_t offset, uint64_t bytes) const;
  bool spares_cache(uint64_t offset, uint64_t bytes) const;
  bool read_direct(uint64_t begin, uint64_t bytes, std::byte* out) const;

  const File* file_;
  Cache cache_;
  int direct_fd_ = -1;
  void* map_ = nullptr;  // Never touched: only to ask which pages are in memory.
};

}  // namespace stoker
