#include "gguf/metadata.h"

#include <algorithm>
#include <concepts>
#include <limits>

#include "gguf/number.h"
#include "gguf/sorted_index.h"

namespace stoker::gguf {
namespace {

constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint64_t kMaxTextBytes = 1u << 30;
constexpr uint64_t kMaxElements = 1u << 30;
// What a count from the file may make us reserve at once; beyond it, memory grows with what has really been read.
constexpr uint64_t kMaxKeysReserved = 1u << 16;

bool plain_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

Result<ValueType> read_value_type(Cursor& cursor, const Field& field) {
  const uint64_t at = cursor.position();
  STOKER_TRY(const uint32_t id, cursor.number<uint32_t>(field));
  if (id > static_cast<uint32_t>(ValueType::kF64))
    return cursor.error(ErrorCode::kCorrupt, field, at, str_cat("value type ", id, " does not exist (0 to 12 do)"));
  return static_cast<ValueType>(id);
}

Error too_large(const Cursor& cursor, const Field& field, uint64_t at, uint64_t value) {
  return cursor.error(ErrorCode::kUnsupported, field, at,
                      str_cat(value, " is above 2^63 - 1, the largest integer that Stoker holds"));
}

constexpr uint64_t kMaxInt = std::numeric_limits<int64_t>::max();

template <class T>
Result<Value> read_number(Cursor& cursor, ValueType type, const Field& field) {
  const uint64_t at = cursor.position();
  STOKER_TRY(const T number, cursor.number<T>(field));
  Value out{type, int64_t{0}};
  if (type == ValueType::kBool) {
    out.data = number != 0;
  } else if constexpr (std::floating_point<T>) {
    out.data = static_cast<double>(number);
  } else {
    if constexpr (std::same_as<T, uint64_t>)
      if (number > kMaxInt) return too_large(cursor, field, at, number);
    out.data = static_cast<int64_t>(number);
  }
  return out;
}

/// `count` numbers that are known to lie in the file.
template <class T>
Status read_numbers(Cursor& cursor, uint64_t count, Field field, Array& out) {
  STOKER_TRY_STATUS(cursor.charge(count * 8, field));
  if constexpr (std::floating_point<T>) {
    out.floats.reserve(static_cast<size_t>(count));
  } else {
    out.ints.reserve(static_cast<size_t>(count));
  }
  const bool big_endian = cursor.big_endian();
  for (uint64_t done = 0; done < count;) {
    const uint64_t piece = std::min<uint64_t>(count - done, Cursor::kWindow / sizeof(T));
    const uint64_t at = cursor.position();
    STOKER_TRY(const std::byte* from, cursor.take(piece * sizeof(T), field));
    for (uint64_t i = 0; i < piece; ++i) {
      const T number = load<T>(from + i * sizeof(T), big_endian);
      if constexpr (std::floating_point<T>) {
        out.floats.push_back(static_cast<double>(number));
      } else {
        if constexpr (std::same_as<T, uint64_t>) {
          field.element = static_cast<int64_t>(done + i);
          if (number > kMaxInt) return too_large(cursor, field, at + i * sizeof(T), number);
        }
        out.ints.push_back(out.element == ValueType::kBool ? number != 0 : static_cast<int64_t>(number));
      }
    }
    done += piece;
  }
  return Ok{};
}

Status read_strings(Cursor& cursor, uint64_t count, Field field, Array& out) {
  STOKER_TRY_STATUS(cursor.charge(count * sizeof(std::string), field));
  out.strings.reserve(static_cast<size_t>(count));
  for (uint64_t i = 0; i < count; ++i) {
    field.element = static_cast<int64_t>(i);
    STOKER_TRY(std::string text, cursor.text(kMaxTextBytes, field));
    out.strings.push_back(std::move(text));
  }
  return Ok{};
}

uint64_t smallest_size(ValueType type) {
  if (type == ValueType::kString) return sizeof(uint64_t);
  return visit_number(type, [](auto zero) -> uint64_t { return sizeof(zero); });
}

Result<Value> read_array(Cursor& cursor, Field field) {
  field.part = "element type";
  const uint64_t type_at = cursor.position();
  STOKER_TRY(const ValueType element, read_value_type(cursor, field));
  if (element == ValueType::kArray)
    return cursor.error(ErrorCode::kUnsupported, field, type_at, "an array of arrays, which no model needs");
  field.part = "element count";
  const uint64_t count_at = cursor.position();
  STOKER_TRY(const uint64_t count, cursor.number<uint64_t>(field));
  const uint64_t room = cursor.left() / smallest_size(element);
  if (count > room || count > kMaxElements)
    return cursor.error(
        ErrorCode::kCorrupt, field, count_at,
        str_cat(count, " elements of type ", value_type_name(element), ", at most ", std::min(room, kMaxElements),
                " fit: the file is truncated or damaged, download it again"));
  field.part = "element";
  Array array{element, {}, {}, {}};
  STOKER_TRY_STATUS(element == ValueType::kString ? read_strings(cursor, count, field, array)
                                                  : visit_number(element, [&](auto zero) {
                                                      return read_numbers<decltype(zero)>(cursor, count, field, array);
                                                    }));
  return Value{ValueType::kArray, std::move(array)};
}

Result<Value> read_value(Cursor& cursor, ValueType type, Field field) {
  if (type == ValueType::kArray) return read_array(cursor, field);
  if (type == ValueType::kString) {
    STOKER_TRY(std::string text, cursor.text(kMaxTextBytes, field));
    return Value{type, std::move(text)};
  }
  return visit_number(type, [&](auto zero) { return read_number<decltype(zero)>(cursor, type, field); });
}

Result<std::string> read_key(Cursor& cursor, uint64_t number) {
  const Field field{.what = "key", .number = static_cast<int64_t>(number), .part = "name"};
  const uint64_t at = cursor.position();
  STOKER_TRY(std::string key, cursor.text(kMaxKeyBytes, field));
  if (key.empty()) return cursor.error(ErrorCode::kCorrupt, field, at, "is empty");
  if (!plain_ascii(key))
    return cursor.error(ErrorCode::kCorrupt, field, at,
                        str_cat(quoted(key), " has other bytes than printable ASCII: the file is damaged"));
  return key;
}

}  // namespace

Result<Metadata> read_metadata(Cursor& cursor, uint64_t count) {
  Metadata out;
  std::vector<uint64_t> positions;
  out.reserve(static_cast<size_t>(std::min(count, kMaxKeysReserved)));
  for (uint64_t i = 0; i < count; ++i) {
    positions.push_back(cursor.position());
    STOKER_TRY(std::string key, read_key(cursor, i));
    Field field{.what = "key", .name = key, .part = "value type"};
    STOKER_TRY_STATUS(cursor.charge(sizeof(Metadata::value_type), field));
    STOKER_TRY(const ValueType type, read_value_type(cursor, field));
    field.part = "value";
    STOKER_TRY(Value value, read_value(cursor, type, field));
    out.emplace_back(std::move(key), std::move(value));
  }
  const auto name_of = [&](size_t i) -> std::string_view { return out[i].first; };
  const std::vector<uint32_t> index = sorted_index(out.size(), name_of);
  if (const auto twice = first_duplicate(index, name_of))
    return cursor.error(ErrorCode::kCorrupt, {.what = "key", .name = name_of(*twice)}, positions[*twice],
                        "stands there a second time: which of the two counts is not defined");
  return out;
}

const Value* find_value(const Metadata& metadata, std::string_view key) {
  const auto found =
      std::find_if(metadata.begin(), metadata.end(), [&](const auto& entry) { return entry.first == key; });
  return found == metadata.end() ? nullptr : &found->second;
}

}  // namespace stoker::gguf
