#include "gguf/header.h"

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "gguf/not_gguf.h"

namespace stoker::gguf {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr uint64_t kMinTensorBytes = 24;  // of a directory entry without name and dimensions
constexpr uint64_t kMinKeyBytes = 14;     // of a key of one letter with a value of one byte
constexpr uint64_t kDefaultAlignment = 32;
constexpr int64_t kMinAlignment = 8, kMaxAlignment = 1 << 20;

bool is_magic(const std::byte* at) { return std::memcmp(at, kMagic.data(), kMagic.size()) == 0; }

Status check_magic(const Source& source) {
  std::array<std::byte, 64> first{};
  const auto length = static_cast<size_t>(std::min<uint64_t>(first.size(), source.size()));
  STOKER_TRY_STATUS(source.read_at(0, std::span(first).first(length)));
  if (length >= kMagic.size() && is_magic(first.data())) return Ok{};
  return Error{ErrorCode::kCorrupt, str_cat(source.name(), ": ", describe_not_gguf(std::span(first).first(length)))};
}

/// Sets the cursor's byte order by the version's: a small number in one order only.
Result<uint32_t> read_version(Cursor& cursor) {
  const Field field{.what = "header", .part = "version"};
  const uint64_t at = cursor.position();
  STOKER_TRY(const uint32_t raw, cursor.number<uint32_t>(field));
  const bool swapped = (raw & 0xffffu) == 0 && raw != 0;
  const uint32_t version = swapped ? swap_bytes(raw) : raw;
  if (swapped && version > 0xffu)
    return cursor.error(ErrorCode::kCorrupt, field, at, str_cat(raw, " is no version in either byte order"));
  if (version == 0) return cursor.error(ErrorCode::kCorrupt, field, at, "0 does not exist: the file is damaged");
  if (version == 1)
    return cursor.error(ErrorCode::kUnsupported, field, at,
                        "1 is obsolete and not read (2 and 3 are): convert the model again");
  if (version > 3)
    return cursor.error(ErrorCode::kUnsupported, field, at,
                        str_cat(version, " is newer than this Stoker knows (2 and 3): update Stoker"));
  cursor.set_big_endian(swapped);
  return version;
}

Result<uint64_t> read_count(Cursor& cursor, std::string_view part, uint64_t smallest) {
  const Field field{.what = "header", .part = part};
  const uint64_t at = cursor.position();
  STOKER_TRY(const uint64_t count, cursor.number<uint64_t>(field));
  const uint64_t room = cursor.left() / smallest;
  if (count > room)
    return cursor.error(
        ErrorCode::kCorrupt, field, at,
        str_cat(count, ", the file has room for ", room, " at most: it is truncated or damaged, download it again"));
  return count;
}

Result<uint64_t> alignment_of(const Source& source, const Metadata& metadata) {
  const Value* value = find_value(metadata, "general.alignment");
  if (!value) return kDefaultAlignment;
  const std::string where = str_cat(source.name(), ": key 'general.alignment'");
  if (value->type != ValueType::kU32)
    return Error{ErrorCode::kCorrupt, str_cat(where, " has type ", value_type_name(value->type), ", wanted u32")};
  const int64_t alignment = std::get<int64_t>(value->data);
  if (alignment < kMinAlignment || alignment > kMaxAlignment || (alignment & (alignment - 1)) != 0)
    return Error{ErrorCode::kCorrupt, str_cat(where, " is ", alignment, ", wanted a power of two from ", kMinAlignment,
                                              " to ", kMaxAlignment)};
  return static_cast<uint64_t>(alignment);
}

Status check_quantization_version(const Source& source, const Metadata& metadata) {
  const Value* value = find_value(metadata, "general.quantization_version");
  const int64_t* version = value ? std::get_if<int64_t>(&value->data) : nullptr;
  if (!version || *version <= 2) return Ok{};
  return Error{ErrorCode::kUnsupported, str_cat(source.name(), ": key 'general.quantization_version' is ", *version,
                                                ", newer than this Stoker knows (2): update Stoker")};
}

/// Where another GGUF header follows the data, as in shards joined with `cat`.
Result<std::optional<uint64_t>> second_header(const Source& source, uint64_t data_end, uint64_t alignment) {
  const auto padded = checked_round_up(data_end, alignment);
  for (const uint64_t at : {data_end, padded.value_or(data_end)}) {
    std::array<std::byte, 4> bytes{};
    if (at > source.size() || source.size() - at < bytes.size()) continue;
    STOKER_TRY_STATUS(source.read_at(at, bytes));
    if (is_magic(bytes.data())) return std::optional(at);
  }
  return std::optional<uint64_t>();
}

Status check_tail(const Source& source, uint64_t alignment, Header& header) {
  const uint64_t end = header.directory.data_end;
  STOKER_TRY(const std::optional<uint64_t> second, second_header(source, end, alignment));
  const Value* split = find_value(header.metadata, "split.count");
  const int64_t* n_shards = split ? std::get_if<int64_t>(&split->data) : nullptr;
  if (second && n_shards && *n_shards > 1)
    return Error{ErrorCode::kCorrupt,
                 str_cat(source.name(), ": shards of a split model joined end to end (the next one begins at byte ",
                         *second, "): pass the first of the ", *n_shards,
                         " original files (...-00001-of-...), or merge them with a tool made for GGUF")};
  const auto padded = checked_round_up(end, alignment);
  if (padded && source.size() > *padded)
    header.directory.notes.push_back(str_cat(source.size() - *padded, " bytes follow the last tensor",
                                             second ? ", another GGUF file it seems" : ""));
  return Ok{};
}

}  // namespace

Result<Header> read_header(const Source& source, File::Options options) {
  STOKER_TRY_STATUS(check_magic(source));
  Cursor cursor(source);
  STOKER_TRY_STATUS(cursor.skip(kMagic.size(), {.what = "header"}));
  Header header;
  STOKER_TRY(header.version, read_version(cursor));
  header.big_endian = cursor.big_endian();
  STOKER_TRY(const uint64_t n_tensors, read_count(cursor, "tensor count", kMinTensorBytes));
  STOKER_TRY(const uint64_t n_keys, read_count(cursor, "key count", kMinKeyBytes));
  STOKER_TRY(header.metadata, read_metadata(cursor, n_keys));
  STOKER_TRY(const uint64_t alignment, alignment_of(source, header.metadata));
  STOKER_TRY_STATUS(check_quantization_version(source, header.metadata));
  STOKER_TRY(header.directory, read_directory(cursor, n_tensors, alignment, options));
  header.kept_bytes = cursor.kept_bytes();
  STOKER_TRY_STATUS(check_tail(source, alignment, header));
  return header;
}

}  // namespace stoker::gguf
