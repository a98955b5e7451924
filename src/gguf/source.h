#pragma once

#include <cstring>
#include <span>
#include <string>

#include "base/file.h"
#include "base/result.h"
#include "base/str_cat.h"

namespace stoker::gguf {

/// Where GGUF bytes come from: an open file, or memory (tests, the fuzzer). Borrows both.
class Source {
 public:
  explicit Source(const stoker::File& file) : file_(&file), name_(file.path()), size_(file.size()) {}
  Source(std::span<const std::byte> memory, const std::string& name)
      : memory_(memory), name_(name), size_(memory.size()) {}

  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }

  /// Fills `out`. kCorrupt: the bytes end before; kIo: the system's reason.
  Status read_at(uint64_t offset, std::span<std::byte> out) const {
    if (file_) return file_->read_at(offset, out);
    if (offset > size_ || out.size() > size_ - offset)
      return Error{ErrorCode::kCorrupt,
                   str_cat(name_, ": ends at byte ", size_, ", wanted ", out.size(), " from ", offset)};
    if (!out.empty()) std::memcpy(out.data(), memory_.data() + offset, out.size());
    return Ok{};
  }

 private:
  const stoker::File* file_ = nullptr;
  std::span<const std::byte> memory_;
  const std::string& name_;
  uint64_t size_;
};

}  // namespace stoker::gguf
