#include "gguf/cursor.h"

#include <algorithm>

#include "base/check.h"

namespace stoker::gguf {

std::string Field::describe() const {
  std::string out(what);
  if (!name.empty()) {
    out += str_cat(" ", quoted(name));
  } else if (number >= 0) {
    out += str_cat(" #", number);
  }
  if (!part.empty()) out += str_cat(", ", part);
  if (element >= 0) out += str_cat(" ", element);
  return out;
}

Cursor::Cursor(const Source& source)
    : source_(source), window_(static_cast<size_t>(std::min<uint64_t>(kWindow, source.size()))) {}

Error Cursor::error(ErrorCode code, const Field& field, uint64_t at, std::string_view text) const {
  return Error{code, str_cat(source_.name(), ": ", field.describe(), " at byte ", at, ": ", text)};
}

Status Cursor::refill(uint64_t bytes, const Field& field) {
  STOKER_CHECK(bytes <= kWindow);
  if (bytes > left())
    return error(ErrorCode::kCorrupt, field, position_,
                 str_cat("needs ", bytes, " bytes, ", left(), " are left: the file is truncated, download it again"));
  const auto length = static_cast<size_t>(std::min<uint64_t>(kWindow, left()));
  STOKER_TRY_STATUS(source_.read_at(position_, std::span(window_).first(length)));
  window_begin_ = position_;
  window_end_ = position_ + length;
  return Ok{};
}

Status Cursor::charge(uint64_t bytes, const Field& field) {
  if (bytes > kMaxKeptBytes - kept_bytes_)
    return error(ErrorCode::kUnsupported, field, position_,
                 str_cat("the header would take more than ", kMaxKeptBytes >> 20,
                         " MiB in memory, far more than a model's: the file is damaged or made to harm"));
  kept_bytes_ += bytes;
  return Ok{};
}

Result<std::string> Cursor::text(uint64_t max_bytes, const Field& field) {
  const uint64_t at = position_;
  STOKER_TRY(const uint64_t length, number<uint64_t>(field));
  if (length > left())
    return error(ErrorCode::kCorrupt, field, at,
                 str_cat("its length says ", length, " bytes, ", left(),
                         " are left: the file is truncated or damaged, download it again"));
  if (length > max_bytes)
    return error(ErrorCode::kCorrupt, field, at,
                 str_cat("its length says ", length, " bytes, at most ", max_bytes, " are allowed"));
  STOKER_TRY_STATUS(charge(length, field));
  std::string out;
  out.reserve(static_cast<size_t>(length));
  for (uint64_t done = 0; done < length;) {
    const uint64_t piece = std::min<uint64_t>(length - done, kWindow);
    STOKER_TRY(const std::byte* from, take(piece, field));
    out.append(reinterpret_cast<const char*>(from), static_cast<size_t>(piece));
    done += piece;
  }
  return out;
}

}  // namespace stoker::gguf
