#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "gguf/file.h"

namespace stoker::model {

/// Some bytes of a tensor, and where they are wanted. A window is aligned to 4096 and of BulkReader::window_bytes.
struct ExpertRead {
  const gguf::TensorInfo* tensor = nullptr;
  uint64_t begin = 0, bytes = 0;
  std::span<std::byte> window{};
};

/// Reads that go on while the threads that began them do something else, each with a number below `depth`.
/// Threads: `begin` from any; `wait` from one at a time.
class ReadQueue {
 public:
  virtual ~ReadQueue() = default;
  /// Begins read number `i`, which is not under way. False: not to be had this way, but by ExpertReader::read.
  virtual bool begin(int i, const ExpertRead& read) = 0;
  struct Done {
    int i = -1;
    std::span<std::byte> bytes{};  ///< In the window. None, and no error: ExpertReader::read may do better.
    std::optional<Error> error{};
  };
  /// The reads that have ended, at most done.size(); waits until there is one. Some must be under way, or be begun
  /// soon.
  virtual size_t wait(std::span<Done> done) = 0;
};

/// Reads pieces of tensors for the store.
class ExpertReader {
 public:
  virtual ~ExpertReader() = default;
  /// As gguf::TensorReader::read: the bytes, somewhere in the window. From any thread.
  virtual Result<std::span<std::byte>> read(const ExpertRead& read) = 0;
  /// How it reads, for people: "direct, by io_uring", "through the page cache".
  virtual std::string mode() const = 0;
  /// Null: reads end in the thread that began them, and there is a thread for each.
  virtual ReadQueue* queue() { return nullptr; }
};

/// Which of them reads from files.
enum class ReaderKind {
  kDefault,  ///< What this version found no slower (docs/expert-store.md#reads).
  kThreads,
  kRing,  ///< io_uring; threads where the system or this build has none.
};

}  // namespace stoker::model
