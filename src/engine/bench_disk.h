#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoker::engine {

/// Random reads of one size, some of them under way at all times.
struct DiskRead {
  int64_t bytes = 0;
  int depth = 0;
  double bytes_per_second = 0;
  double reads_per_second = 0;
};

struct DiskOptions {
  std::string path{};  ///< A file, which is read, or a folder, where one is written that no crash leaves behind.
  bool quick = false;  ///< Too short to be exact: for tests.
  std::vector<int64_t> sizes{4096, 16384, 65536, 262144, 1 << 20, 4 << 20};  ///< Of the reads. Not where `quick`.
  std::vector<int> depths{1, 4, 16};
  int milliseconds = 500;  ///< For each.
  int64_t run_bytes = 0;   ///< From each random place on, one read after the other, of whoever is free; 0: one read.
  const std::atomic<bool>* cancel = nullptr;
  std::function<void()> on_step{};
  uint64_t steps() const;  ///< How often on_step is called.
};

/// Reads past the page cache (O_DIRECT), 4 KiB to 4 MiB at a time, 1, 4 and 16 at once.
/// kNotFound, kIo: name the path and the reason. kInvalidArgument: the file is too small. kUnsupported: the file system
/// has no direct reads. kCancelled.
Result<std::vector<DiskRead>> measure_disk(const DiskOptions& options);

}  // namespace stoker::engine
