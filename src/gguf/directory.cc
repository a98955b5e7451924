#include "gguf/directory.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "base/checked.h"
#include "gguf/sorted_index.h"

namespace stoker::gguf {
namespace {

constexpr uint64_t kMaxNameBytes = 64;
constexpr uint32_t kMaxDims = 4;
constexpr uint64_t kMaxTensorsReserved = 1u << 14;

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += str_cat(i ? ", " : "", shape[i]);
  return out + "]";
}

Result<std::string> read_name(Cursor& cursor, uint64_t number) {
  const Field field{.what = "tensor", .number = static_cast<int64_t>(number), .part = "name"};
  const uint64_t at = cursor.position();
  STOKER_TRY(std::string name, cursor.text(kMaxNameBytes, field));
  if (name.empty()) return cursor.error(ErrorCode::kCorrupt, field, at, "is empty");
  if (name.find('\0') != std::string::npos)
    return cursor.error(ErrorCode::kCorrupt, field, at, str_cat(quoted(name), " has a NUL byte in it"));
  return name;
}

/// The dimensions, turned outermost first, without the ones that only fill up.
Result<std::vector<int64_t>> read_shape(Cursor& cursor, Field field) {
  field.part = "number of dimensions";
  const uint64_t n_dims_at = cursor.position();
  STOKER_TRY(const uint32_t n_dims, cursor.number<uint32_t>(field));
  if (n_dims > kMaxDims)
    return cursor.error(ErrorCode::kCorrupt, field, n_dims_at, str_cat("is ", n_dims, ", at most 4 are allowed"));
  std::vector<int64_t> shape;
  int64_t n_elements = 1;
  field.part = "dimension";
  for (uint32_t i = 0; i < n_dims; ++i) {
    field.element = i;
    const uint64_t at = cursor.position();
    STOKER_TRY(const uint64_t size, cursor.number<uint64_t>(field));
    const auto dim = checked_cast<int64_t>(size);
    if (!dim || *dim == 0)
      return cursor.error(ErrorCode::kCorrupt, field, at, str_cat("is ", size, ", from 1 to 2^63 - 1 are allowed"));
    const auto product = checked_mul(n_elements, *dim);
    if (!product)
      return cursor.error(ErrorCode::kCorrupt, field, at, str_cat("is ", size, ": more than 2^63 - 1 elements"));
    n_elements = *product;
    shape.push_back(*dim);
  }
  while (shape.size() > 1 && shape.back() == 1) shape.pop_back();
  if (shape.empty()) shape.push_back(1);
  std::reverse(shape.begin(), shape.end());
  return shape;
}

Result<TypeInfo> check_type(const Cursor& cursor, const Field& field, uint64_t at, uint32_t id) {
  const std::optional<TypeInfo> info = type_info(id);
  if (!info && removed_type(id))
    return cursor.error(ErrorCode::kUnsupported, field, at,
                        str_cat("type ", id, " (", type_name(static_cast<TensorType>(id)),
                                ") was removed from the format: convert the model again"));
  if (!info)
    return cursor.error(ErrorCode::kUnsupported, field, at,
                        str_cat("type ", id, " is not known (possibly another program's own format)"));
  if (cursor.big_endian() && !can_swap(info->type))
    return cursor.error(ErrorCode::kUnsupported, field, at,
                        str_cat("type ", info->name,
                                " cannot be read from a big-endian file: "
                                "use a little-endian file of the model"));
  return *info;
}

Result<uint64_t> byte_size(const Cursor& cursor, Field field, uint64_t shape_at, const TensorInfo& tensor,
                           const TypeInfo& type) {
  field.part = "shape";
  if (tensor.shape.back() % type.n_weights != 0)
    return cursor.error(
        ErrorCode::kCorrupt, field, cursor.position(),
        str_cat(shape_text(tensor.shape), ": rows of ", type.name, " are multiples of ", type.n_weights));
  const auto bytes =
      checked_mul(static_cast<uint64_t>(tensor.n_elements() / type.n_weights), static_cast<uint64_t>(type.n_bytes));
  if (!bytes)
    return cursor.error(ErrorCode::kCorrupt, field, shape_at,
                        str_cat(shape_text(tensor.shape), " of type ", type.name, ": more than 2^64 bytes"));
  return *bytes;
}

Result<TensorInfo> read_tensor_info(Cursor& cursor, uint64_t number, uint64_t alignment, File::Options options) {
  TensorInfo tensor{};
  STOKER_TRY(tensor.name, read_name(cursor, number));
  Field field{.what = "tensor", .name = tensor.name};
  const uint64_t shape_at = cursor.position();
  STOKER_TRY(tensor.shape, read_shape(cursor, field));

  field.part = "type";
  const uint64_t type_at = cursor.position();
  STOKER_TRY(tensor.type_id, cursor.number<uint32_t>(field));
  const Result<TypeInfo> type = check_type(cursor, field, type_at, tensor.type_id);
  if (!type && !options.allow_unknown_types) return type.error();
  if (const auto info = type_info(tensor.type_id)) {
    STOKER_TRY(tensor.bytes, byte_size(cursor, field, shape_at, tensor, *info));
  }

  field.part = "offset";
  const uint64_t offset_at = cursor.position();
  STOKER_TRY(tensor.offset, cursor.number<uint64_t>(field));
  if (tensor.offset % alignment != 0)
    return cursor.error(ErrorCode::kCorrupt, field, offset_at,
                        str_cat(tensor.offset, " is no multiple of the file's alignment, ", alignment));
  // With the allocations of the name and the shape, and its place in the sorted lists.
  STOKER_TRY_STATUS(cursor.charge(sizeof(TensorInfo) + 64, field));
  return tensor;
}

Status check_duplicates(const Cursor& cursor, const std::vector<TensorInfo>& tensors) {
  const auto name_of = [&](size_t i) -> std::string_view { return tensors[i].name; };
  const auto twice = first_duplicate(sorted_index(tensors.size(), name_of), name_of);
  if (!twice) return Ok{};
  return Error{ErrorCode::kCorrupt, str_cat(cursor.source().name(), ": tensor ", quoted(name_of(*twice)),
                                            " stands in the directory twice (second time as number ", *twice, ")")};
}

Error place_error(const Cursor& cursor, const TensorInfo& tensor, std::string_view text) {
  return Error{ErrorCode::kCorrupt,
               str_cat(cursor.source().name(), ": tensor ", quoted(tensor.name), " (", type_name(tensor.type()), ", ",
                       shape_text(tensor.shape), ", ", tensor.bytes, " bytes): ", text)};
}

/// Makes offsets absolute once it is known that data lie inside the file.
Status place(const Cursor& cursor, uint64_t data_begin, File::Options options, Directory& directory) {
  const uint64_t size = options.header_only ? std::numeric_limits<uint64_t>::max() : cursor.source().size();
  for (TensorInfo& tensor : directory.tensors) {
    const uint64_t room = data_begin <= size ? size - data_begin : 0;
    if (data_begin > size || tensor.offset > room || tensor.bytes > room - tensor.offset)
      return place_error(
          cursor, tensor,
          str_cat("stands at byte ", tensor.offset, " of the data, which begin at byte ", data_begin,
                  "; the file has only ", size, " bytes: it is truncated or damaged, download it again"));
    tensor.offset += data_begin;
    directory.data_end = std::max(directory.data_end, tensor.offset + tensor.bytes);
  }
  return Ok{};
}

Status check_overlap(const Cursor& cursor, const std::vector<TensorInfo>& tensors) {
  std::vector<uint32_t> by_offset(tensors.size());
  std::iota(by_offset.begin(), by_offset.end(), 0u);
  std::sort(by_offset.begin(), by_offset.end(),
            [&](uint32_t a, uint32_t b) { return std::pair(tensors[a].offset, a) < std::pair(tensors[b].offset, b); });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const TensorInfo& before = tensors[by_offset[i - 1]];
    const TensorInfo& tensor = tensors[by_offset[i]];
    if (before.bytes > tensor.offset - before.offset)
      return place_error(cursor, tensor,
                         str_cat("begins at byte ", tensor.offset, ", inside tensor ", quoted(before.name), " at ",
                                 before.offset, " to ", before.offset + before.bytes));
  }
  return Ok{};
}

/// Whether each tensor follows the one before it in the directory, padded: what most writers do and some readers
/// demand.
void note_gaps(uint64_t data_begin, uint64_t alignment, Directory& directory) {
  uint64_t expected = data_begin;
  for (const TensorInfo& tensor : directory.tensors) {
    if (tensor.bytes == 0) return;  // of unknown type
    if (tensor.offset != expected) {
      directory.notes.push_back(str_cat("tensor ", quoted(tensor.name), " is at byte ", tensor.offset,
                                        " where the one before it would put it at ", expected,
                                        ": harmless here, some other programs refuse it"));
      return;
    }
    // Inside the file: no overflow, at most one alignment past its end.
    expected = data_begin + round_up(tensor.offset + tensor.bytes - data_begin, alignment);
  }
}

}  // namespace

Result<Directory> read_directory(Cursor& cursor, uint64_t count, uint64_t alignment, File::Options options) {
  Directory out;
  out.tensors.reserve(static_cast<size_t>(std::min(count, kMaxTensorsReserved)));
  for (uint64_t i = 0; i < count; ++i) {
    STOKER_TRY(TensorInfo tensor, read_tensor_info(cursor, i, alignment, options));
    out.tensors.push_back(std::move(tensor));
  }
  STOKER_TRY_STATUS(check_duplicates(cursor, out.tensors));
  out.data_end = cursor.position();
  if (count == 0) return out;

  const auto data_begin = checked_round_up(cursor.position(), alignment);
  if (!data_begin)
    return Error{ErrorCode::kCorrupt, str_cat(cursor.source().name(), ": the tensor data would begin past 2^64")};
  STOKER_TRY_STATUS(place(cursor, *data_begin, options, out));
  STOKER_TRY_STATUS(check_overlap(cursor, out.tensors));
  note_gaps(*data_begin, alignment, out);
  return out;
}

}  // namespace stoker::gguf
