#include "gguf/file.h"

#include <algorithm>
#include <array>

#include "base/str_cat.h"
#include "gguf/byte_order.h"
#include "gguf/reader.h"
#include "gguf/sorted_index.h"
#include "gguf/source.h"

namespace stoker::gguf {

int64_t TensorInfo::n_elements() const {
  int64_t n = 1;
  for (int64_t dim : shape) n *= dim;  // known to fit since the file was opened
  return n;
}

Result<File> File::open(const std::string& path, Options options) {
  const std::optional<ShardName> name = parse_shard_name(path);
  if (name && name->count > 1) return Reader::open_split(path, *name, options);
  return Reader::open_single(path, options);
}

Result<File> File::parse(std::span<const std::byte> bytes, std::string name, Options options) {
  return Reader::parse_single(bytes, std::move(name), options);
}

const TensorInfo* File::find_tensor(std::string_view name) const {
  const auto found = find_name(tensor_index_, name, [&](size_t i) -> std::string_view { return tensors_[i].name; });
  return found ? &tensors_[*found] : nullptr;
}

const Value* File::find(std::string_view key) const {
  const auto found = find_name(key_index_, key, [&](size_t i) -> std::string_view { return metadata_[i].first; });
  return found ? &metadata_[*found].second : nullptr;
}

namespace {

Error wrong_type(const File& file, std::string_view key, const Value& value, std::string_view wanted) {
  std::string type(value_type_name(value.type));
  if (const auto* array = std::get_if<Array>(&value.data)) type = str_cat("array of ", value_type_name(array->element));
  return Error{ErrorCode::kCorrupt,
               str_cat(file.path(), ": key ", quoted(key), " has type ", type, ", wanted ", wanted)};
}

}  // namespace

Result<std::optional<int64_t>> File::integer(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return std::optional<int64_t>();
  if (const auto* number = std::get_if<int64_t>(&value->data)) return std::optional(*number);
  return wrong_type(*this, key, *value, "an integer");
}

Result<std::optional<double>> File::real(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return std::optional<double>();
  if (const auto* number = std::get_if<double>(&value->data)) return std::optional(*number);
  if (const auto* number = std::get_if<int64_t>(&value->data)) return std::optional(static_cast<double>(*number));
  return wrong_type(*this, key, *value, "a number");
}

Result<std::optional<bool>> File::boolean(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return std::optional<bool>();
  if (const auto* flag = std::get_if<bool>(&value->data)) return std::optional(*flag);
  const auto* number = std::get_if<int64_t>(&value->data);
  if (!number) return wrong_type(*this, key, *value, "bool");
  if (*number != 0 && *number != 1)
    return Error{ErrorCode::kCorrupt, str_cat(path_, ": key ", quoted(key), " is ", *number, ", wanted bool, 0 or 1")};
  return std::optional(*number == 1);
}

Result<std::optional<std::string>> File::string(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return std::optional<std::string>();
  if (const auto* text = std::get_if<std::string>(&value->data)) return std::optional(*text);
  return wrong_type(*this, key, *value, "string");
}

Result<const Array*> File::array(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return static_cast<const Array*>(nullptr);
  if (const auto* array = std::get_if<Array>(&value->data)) return array;
  return wrong_type(*this, key, *value, "an array");
}

namespace {

/// Reads [begin, begin + out.size()) of a tensor at `offset` whose blocks are stored the other way round. Only whole
/// blocks can be turned, so a block that is wanted in part goes through a buffer.
Status read_swapped(const Source& source, const TensorInfo& tensor, uint64_t begin, std::span<std::byte> out) {
  std::array<std::byte, 512> buffer;
  const auto block_bytes = static_cast<uint64_t>(type_info(tensor.type_id)->n_bytes);
  while (!out.empty()) {
    const uint64_t skip = begin % block_bytes;
    size_t n = out.size() - out.size() % block_bytes;
    if (skip == 0 && n > 0) {
      STOKER_TRY_STATUS(source.read_at(tensor.offset + begin, out.first(n)));
      swap_blocks(tensor.type(), out.first(n));
    } else {
      const auto block = std::span(buffer).first(block_bytes);
      STOKER_TRY_STATUS(source.read_at(tensor.offset + begin - skip, block));
      swap_blocks(tensor.type(), block);
      n = std::min<size_t>(out.size(), block_bytes - skip);
      std::copy_n(block.begin() + static_cast<ptrdiff_t>(skip), n, out.begin());
    }
    begin += n;
    out = out.subspan(n);
  }
  return Ok{};
}

}  // namespace

Error File::tensor_error(const Error& error, const TensorInfo& tensor, uint64_t begin, uint64_t bytes) {
  return {error.code,
          str_cat("tensor ", quoted(tensor.name), ", bytes ", begin, " to ", begin + bytes, ": ", error.message)};
}

Status File::check_range(const TensorInfo& tensor, uint64_t begin, uint64_t bytes) {
  if (begin <= tensor.bytes && bytes <= tensor.bytes - begin) return Ok{};
  return tensor_error({ErrorCode::kInvalidArgument, str_cat("it has ", tensor.bytes, " bytes")}, tensor, begin, bytes);
}

Status File::read_tensor(const TensorInfo& tensor, uint64_t begin, std::span<std::byte> out) const {
  STOKER_TRY_STATUS(check_range(tensor, begin, out.size()));
  if (out.empty()) return Ok{};
  const Source source = shards_.empty() ? Source(memory_, path_) : Source(shards_[static_cast<size_t>(tensor.shard)]);
  if (big_endian_ && !can_swap(tensor.type()))
    return tensor_error(
        {ErrorCode::kUnsupported, str_cat("type ", type_name(tensor.type()), " cannot be read from a big-endian file")},
        tensor, begin, out.size());
  Status status = big_endian_ ? read_swapped(source, tensor, begin, out) : source.read_at(tensor.offset + begin, out);
  if (!status) return tensor_error(status.error(), tensor, begin, out.size());
  return Ok{};
}

}  // namespace stoker::gguf
