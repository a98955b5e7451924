#include "quant/all.h"

#include <algorithm>
#include <cmath>

#include "base/str_cat.h"

namespace stoker::quant {
namespace {

template <class Type>
void encode_row(std::span<const float> x, std::byte* out) {
  using Block = typename Type::Block;
  for (size_t i = 0; i < x.size(); i += Type::kWeights, out += sizeof(Block)) {
    if constexpr (PlainType<Type>) {
      store_block(Type::encode(x[i]), out);
    } else {
      Block block;
      Type::encode(x.data() + i, block);
      store_block(block, out);
    }
  }
}

template <class Type>
Status check_sizes(int64_t n, size_t bytes) {
  if (n < 0 || n % Type::kWeights != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 str_cat("quant: ", Type::kName, " has blocks of ", Type::kWeights, " weights, a row has ", n)};
  }
  const uint64_t wanted = static_cast<uint64_t>(n / Type::kWeights) * sizeof(typename Type::Block);
  if (wanted != bytes) {
    return Error{ErrorCode::kInvalidArgument,
                 str_cat("quant: ", n, " weights of ", Type::kName, " take ", wanted, " bytes, not ", bytes)};
  }
  return Ok{};
}

template <class Type>
constexpr bool kStoresAnyFloat = Type::kType == gguf::TensorType::kF32 || Type::kType == gguf::TensorType::kF16 ||
                                 Type::kType == gguf::TensorType::kBF16 || Type::kType == gguf::TensorType::kF64;

template <class Type>
Status check_finite(std::span<const float> x) {
  if constexpr (kStoresAnyFloat<Type>) return Ok{};
  const auto bad = std::find_if(x.begin(), x.end(), [](float value) { return !(std::fabs(value) <= kLargestFloat); });
  if (bad == x.end()) return Ok{};
  return Error{ErrorCode::kInvalidArgument, str_cat("quant: weight ", bad - x.begin(), " of a row is ", *bad,
                                                    ", which ", Type::kName, " cannot hold")};
}

// Calls f.template operator()<Type>() for the type of that number; it returns a Status.
template <class F>
Status dispatch(gguf::TensorType type, F&& f) {
  Status status = Error{ErrorCode::kUnsupported, str_cat("quant: type ", gguf::type_name(type), " (number ",
                                                         static_cast<uint32_t>(type), ") is not supported yet")};
  AllQuants::any([&]<class Type>() {
    if (Type::kType != type) return false;
    status = f.template operator()<Type>();
    return true;
  });
  return status;
}

}  // namespace

bool is_supported(gguf::TensorType type) {
  return AllQuants::any([&]<class Type>() { return Type::kType == type; });
}

Status dequantize_row(gguf::TensorType type, std::span<const std::byte> bytes, int64_t n, float* out) {
  return dispatch(type, [&]<class Type>() -> Status {
    STOKER_TRY_STATUS(check_sizes<Type>(n, bytes.size()));
    decode_row<Type>(bytes.data(), n, out);
    return Ok{};
  });
}

Status quantize_row(gguf::TensorType type, std::span<const float> x, std::span<std::byte> out) {
  return dispatch(type, [&]<class Type>() -> Status {
    STOKER_TRY_STATUS(check_sizes<Type>(static_cast<int64_t>(x.size()), out.size()));
    STOKER_TRY_STATUS(check_finite<Type>(x));
    encode_row<Type>(x, out.data());
    return Ok{};
  });
}

}  // namespace stoker::quant
