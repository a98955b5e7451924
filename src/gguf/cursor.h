#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/byte_order.h"
#include "gguf/source.h"

namespace stoker::gguf {

/// What is being read, for messages: "key 'general.name', value" or, before its name is known, "key #3, name".
/// Put into words only when something is wrong.
struct Field {
  std::string_view what;  ///< "header", "key", "tensor"
  std::string_view name = {};
  int64_t number = -1;
  std::string_view part = {};
  int64_t element = -1;
  std::string describe() const;
};

/// Walks through a header from front to back, reading ahead in large pieces. Nothing is read, and nothing allocated,
/// before it is known to lie inside the file; all that is kept from a header is charged to one budget.
class Cursor {
 public:
  /// What the header of one file may take in memory. A vocabulary of 262144 tokens takes some 15 MiB.
  static constexpr uint64_t kMaxKeptBytes = 512u << 20;

  explicit Cursor(const Source& source);

  uint64_t position() const { return position_; }
  uint64_t left() const { return source_.size() - position_; }
  bool big_endian() const { return big_endian_; }
  void set_big_endian(bool big_endian) { big_endian_ = big_endian; }
  const Source& source() const { return source_; }

  /// The next `bytes` (at most kWindow) in memory, valid until the next call. kCorrupt: the file ends before.
  Result<const std::byte*> take(uint64_t bytes, const Field& field) {
    // One comparison for nearly all calls.
    if (bytes > window_end_ - position_) STOKER_TRY_STATUS(refill(bytes, field));
    const std::byte* at = window_.data() + (position_ - window_begin_);
    position_ += bytes;
    return at;
  }

  Status skip(uint64_t bytes, const Field& field) {
    STOKER_TRY([[maybe_unused]] const std::byte* at, take(bytes, field));
    return Ok{};
  }

  template <class T>
  Result<T> number(const Field& field) {
    STOKER_TRY(const std::byte* at, take(sizeof(T), field));
    return load<T>(at, big_endian_);
  }

  /// A length and that many bytes, which are charged. kCorrupt: longer than `max_bytes` or than the rest of the file.
  Result<std::string> text(uint64_t max_bytes, const Field& field);

  /// Enters `bytes` that are about to be kept. kUnsupported: more than kMaxKeptBytes.
  Status charge(uint64_t bytes, const Field& field);
  uint64_t kept_bytes() const { return kept_bytes_; }

  /// "FILE: FIELD at byte N: TEXT".
  Error error(ErrorCode code, const Field& field, uint64_t at, std::string_view text) const;

  static constexpr size_t kWindow = 256u << 10;

 private:
  Status refill(uint64_t bytes, const Field& field);

  const Source& source_;
  uint64_t position_ = 0;
  uint64_t window_begin_ = 0;
  uint64_t window_end_ = 0;
  std::vector<std::byte> window_;
  uint64_t kept_bytes_ = 0;
  bool big_endian_ = false;
};

}  // namespace stoker::gguf
