#include "gguf/writer.h"

#include <algorithm>
#include <concepts>

#include "base/checked.h"
#include "base/file.h"
#include "base/str_cat.h"
#include "gguf/byte_order.h"
#include "gguf/number.h"
#include "gguf/split.h"

namespace stoker::gguf {
namespace {

constexpr size_t kStrictNameBytes = 63;  // what the strictest readers take

/// Appends fields in one byte order.
class Sink {
 public:
  explicit Sink(bool big_endian, std::string begin = {}) : big_endian_(big_endian), out_(std::move(begin)) {}

  template <class T>
  void number(T value) {
    std::byte bytes[sizeof(T)];
    store(value, big_endian_, bytes);
    out_.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
  }
  void raw(std::string_view bytes) { out_ += bytes; }
  void text(std::string_view text) {
    number(static_cast<uint64_t>(text.size()));
    out_ += text;
  }
  void pad(size_t alignment) { out_.resize(round_up(out_.size(), alignment)); }
  std::string take() { return std::move(out_); }

 private:
  bool big_endian_;
  std::string out_;
};

bool is_real(ValueType type) { return type == ValueType::kF32 || type == ValueType::kF64; }

Error bad_value(std::string_view key, std::string_view text) {
  return Error{ErrorCode::kInvalidArgument, str_cat("key ", quoted(key), ": ", text)};
}

/// `from` is a bool, an int64_t or a double.
template <class From>
Status write_number(Sink& sink, std::string_view key, ValueType type, From from) {
  if (is_real(type) != std::floating_point<From>)
    return bad_value(key, str_cat("the value is not of type ", value_type_name(type)));
  return visit_number(type, [&](auto zero) -> Status {
    using T = decltype(zero);
    if constexpr (std::integral<T> && !std::floating_point<From>) {
      const auto number = checked_cast<T>(static_cast<int64_t>(from));
      if (!number || (type == ValueType::kBool && *number > 1))
        return bad_value(key, str_cat(from, " does not fit type ", value_type_name(type)));
      sink.number(*number);
    } else {
      sink.number(static_cast<T>(from));
    }
    return Ok{};
  });
}

Status write_array(Sink& sink, std::string_view key, const Array& array) {
  const bool strings = array.element == ValueType::kString;
  const bool reals = is_real(array.element);
  const size_t size = strings ? array.strings.size() : reals ? array.floats.size() : array.ints.size();
  if (array.element > ValueType::kF64 || array.element == ValueType::kArray || size != array.size())
    return bad_value(key, str_cat("the elements are not of type ", value_type_name(array.element)));
  sink.number(static_cast<uint32_t>(array.element));
  sink.number(static_cast<uint64_t>(size));
  for (const std::string& text : array.strings) sink.text(text);
  for (double number : array.floats) STOKER_TRY_STATUS(write_number(sink, key, array.element, number));
  for (int64_t number : array.ints) STOKER_TRY_STATUS(write_number(sink, key, array.element, number));
  return Ok{};
}

Status write_value(Sink& sink, std::string_view key, const Value& value) {
  sink.number(static_cast<uint32_t>(value.type));
  const bool is_text = std::holds_alternative<std::string>(value.data);
  const bool is_array = std::holds_alternative<Array>(value.data);
  if (value.type > ValueType::kF64 || is_text != (value.type == ValueType::kString) ||
      is_array != (value.type == ValueType::kArray))
    return bad_value(key, str_cat("the value is not of type ", value_type_name(value.type)));
  if (is_text) {
    sink.text(std::get<std::string>(value.data));
    return Ok{};
  }
  if (is_array) return write_array(sink, key, std::get<Array>(value.data));
  if (const auto* flag = std::get_if<bool>(&value.data)) return write_number(sink, key, value.type, *flag);
  if (const auto* real = std::get_if<double>(&value.data)) return write_number(sink, key, value.type, *real);
  return write_number(sink, key, value.type, std::get<int64_t>(value.data));
}

Array array_of(ValueType element) { return Array{element, {}, {}, {}}; }

}  // namespace

Writer::Writer(std::string_view architecture, Options options) : options_(options) {
  if (!architecture.empty()) add_string("general.architecture", std::string(architecture));
}

void Writer::add(std::string key, Value value) { metadata_.emplace_back(std::move(key), std::move(value)); }
void Writer::add_u32(std::string key, uint32_t value) {
  add(std::move(key), {ValueType::kU32, static_cast<int64_t>(value)});
}
void Writer::add_f32(std::string key, float value) {
  add(std::move(key), {ValueType::kF32, static_cast<double>(value)});
}
void Writer::add_bool(std::string key, bool value) { add(std::move(key), {ValueType::kBool, value}); }
void Writer::add_string(std::string key, std::string value) {
  add(std::move(key), {ValueType::kString, std::move(value)});
}
void Writer::add_strings(std::string key, std::vector<std::string> values) {
  Array array = array_of(ValueType::kString);
  array.strings = std::move(values);
  add(std::move(key), {ValueType::kArray, std::move(array)});
}
void Writer::add_i32s(std::string key, std::vector<int32_t> values) {
  Array array = array_of(ValueType::kI32);
  array.ints.assign(values.begin(), values.end());
  add(std::move(key), {ValueType::kArray, std::move(array)});
}
void Writer::add_f32s(std::string key, std::vector<float> values) {
  Array array = array_of(ValueType::kF32);
  array.floats.assign(values.begin(), values.end());
  add(std::move(key), {ValueType::kArray, std::move(array)});
}

Status Writer::declare_tensor(std::string name, TensorType type, std::vector<int64_t> shape) {
  const auto refuse = [&](std::string_view why) {
    return Error{ErrorCode::kInvalidArgument, str_cat("tensor ", quoted(name), ": ", why)};
  };
  if (name.empty() || name.size() > kStrictNameBytes || name.find('\0') != std::string::npos)
    return refuse("names have 1 to 63 bytes, none of them NUL");
  const std::optional<TypeInfo> info = type_info(type);
  if (!info) return refuse(str_cat("type ", static_cast<uint32_t>(type), " is not known"));
  if (shape.empty() || shape.size() > 4) return refuse(str_cat(shape.size(), " dimensions, wanted 1 to 4"));
  std::optional<int64_t> n = 1;
  for (int64_t dim : shape) n = dim > 0 && n ? checked_mul(*n, dim) : std::nullopt;
  if (!n || shape.back() % info->n_weights != 0)
    return refuse(str_cat("dimensions are at least 1, rows multiples of ", info->n_weights));
  const auto n_bytes =
      checked_mul<uint64_t>(static_cast<uint64_t>(*n / info->n_weights), static_cast<uint64_t>(info->n_bytes));
  if (!n_bytes) return refuse("is too large for 64 bits");
  if (!tensor_names_.insert(name).second) return refuse("is there already");
  tensors_.push_back({std::move(name), type, std::move(shape), *n_bytes, {}});
  return Ok{};
}

Status Writer::add_tensor(std::string name, TensorType type, std::vector<int64_t> shape,
                          std::span<const std::byte> bytes) {
  STOKER_TRY_STATUS(declare_tensor(std::move(name), type, std::move(shape)));
  Tensor& tensor = tensors_.back();
  if (tensor.n_bytes != bytes.size()) {
    const Error error{ErrorCode::kInvalidArgument,
                      str_cat("tensor ", quoted(tensor.name), ": ", bytes.size(), " bytes, wanted ", tensor.n_bytes)};
    tensor_names_.erase(tensor.name);
    tensors_.pop_back();
    return error;
  }
  tensor.bytes.assign(bytes.begin(), bytes.end());
  return Ok{};
}

Result<std::string> Writer::serialise_header(const Metadata& metadata, std::span<const Tensor> tensors) const {
  const size_t alignment = options_.alignment;
  Sink sink(options_.big_endian);
  sink.raw("GGUF");
  sink.number(options_.version);
  sink.number(static_cast<uint64_t>(tensors.size()));
  sink.number(static_cast<uint64_t>(metadata.size()));
  std::set<std::string_view> keys;
  for (const auto& [key, value] : metadata) {
    if (key.empty() || !keys.insert(key).second) return bad_value(key, "is empty or there twice");
    sink.text(key);
    STOKER_TRY_STATUS(write_value(sink, key, value));
  }
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    sink.text(tensor.name);
    sink.number(static_cast<uint32_t>(tensor.shape.size()));
    for (auto dim = tensor.shape.rbegin(); dim != tensor.shape.rend(); ++dim) sink.number(static_cast<uint64_t>(*dim));
    sink.number(static_cast<uint32_t>(tensor.type));
    sink.number(offset);
    offset += round_up<uint64_t>(tensor.n_bytes, alignment);
  }
  if (!tensors.empty()) sink.pad(alignment);
  return sink.take();
}

Result<std::string> Writer::serialise(const Metadata& metadata, std::span<const Tensor> tensors) const {
  STOKER_TRY(std::string begin, serialise_header(metadata, tensors));
  Sink sink(options_.big_endian, std::move(begin));
  for (const Tensor& tensor : tensors) {
    if (tensor.bytes.size() != tensor.n_bytes)
      return Error{ErrorCode::kInvalidArgument, str_cat("tensor ", quoted(tensor.name), ": its bytes are missing")};
    std::vector<std::byte> turned;
    if (options_.big_endian) {
      if (!can_swap(tensor.type))
        return Error{ErrorCode::kUnsupported, str_cat("tensor ", quoted(tensor.name), ": type ", type_name(tensor.type),
                                                      " has no big-endian form")};
      turned = tensor.bytes;
      swap_blocks(tensor.type, turned);
    }
    const std::vector<std::byte>& bytes = options_.big_endian ? turned : tensor.bytes;
    sink.raw({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    sink.pad(options_.alignment);
  }
  return sink.take();
}

}  // namespace stoker::gguf
