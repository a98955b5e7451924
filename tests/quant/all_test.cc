#include "quant/all.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace stoker::quant {
namespace {

using gguf::TensorType;

TEST(All, EveryTypeOnceWithTheFormatsSizes) {
  std::set<uint32_t> ids;
  AllQuants::any([&]<class Type>() {
    EXPECT_TRUE(ids.insert(static_cast<uint32_t>(Type::kType)).second) << Type::kName;
    const auto info = gguf::type_info(Type::kType);
    EXPECT_TRUE(info.has_value()) << Type::kName;
    if (info) {
      EXPECT_EQ(info->name, Type::kName);
      EXPECT_EQ(info->n_weights, Type::kWeights) << Type::kName;
      EXPECT_EQ(info->n_bytes, static_cast<int>(sizeof(typename Type::Block))) << Type::kName;
    }
    EXPECT_TRUE(is_supported(Type::kType));
    return false;
  });
  EXPECT_EQ(ids.size(), 20u);
}

TEST(All, RefusesOtherTypesByName) {
  float out[256];
  std::byte bytes[512] = {};
  const Status status = dequantize_row(TensorType::kIQ2XXS, bytes, 256, out);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(status.error().message.find("IQ2_XXS"), std::string::npos) << status.error().message;
  for (uint32_t id : {4u, 5u, 9u, 15u, 27u, 40u, 63u, 1000u}) {
    const auto type = static_cast<TensorType>(id);
    EXPECT_FALSE(is_supported(type)) << id;
    const Status encode = quantize_row(type, out, bytes);
    ASSERT_FALSE(encode) << id;
    EXPECT_EQ(encode.error().code, ErrorCode::kUnsupported) << id;
    EXPECT_NE(encode.error().message.find(std::to_string(id)), std::string::npos) << encode.error().message;
  }
}

TEST(All, RefusesRowsThatEndInsideABlockAndWrongSizes) {
  AllQuants::any([]<class Type>() {
    std::vector<float> x(2 * Type::kWeights + 1);
    std::vector<std::byte> bytes(2 * sizeof(typename Type::Block));
    const auto n = static_cast<int64_t>(2 * Type::kWeights);
    EXPECT_TRUE(dequantize_row(Type::kType, bytes, n, x.data())) << Type::kName;
    EXPECT_TRUE(quantize_row(Type::kType, std::span(x).first(2 * Type::kWeights), bytes)) << Type::kName;
    EXPECT_TRUE(dequantize_row(Type::kType, {}, 0, x.data())) << Type::kName;
    for (const Status& status :
         {dequantize_row(Type::kType, bytes, n + 1, x.data()), dequantize_row(Type::kType, bytes, -n, x.data()),
          dequantize_row(Type::kType, std::span(bytes).first(bytes.size() - 1), n, x.data()),
          quantize_row(Type::kType, x, bytes),
          quantize_row(Type::kType, std::span(x).first(2 * Type::kWeights), std::span(bytes).subspan(1))}) {
      EXPECT_TRUE(!status && status.error().code == ErrorCode::kInvalidArgument) << Type::kName;
    }
    return false;
  });
}

TEST(All, OnlyFloatsStoreWhatIsNotFinite) {
  for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::quiet_NaN()}) {
    AllQuants::any([&]<class Type>() {
      std::vector<float> x(Type::kWeights, 1.0f);
      x.back() = bad;
      std::vector<std::byte> bytes(sizeof(typename Type::Block));
      const Status status = quantize_row(Type::kType, x, bytes);
      const std::set<std::string_view> floats = {"F32", "F16", "BF16", "F64"};
      EXPECT_EQ(status.has_value(), floats.contains(Type::kName)) << Type::kName << " " << bad;
      if (status) {
        EXPECT_TRUE(dequantize_row(Type::kType, bytes, Type::kWeights, x.data()));
        EXPECT_TRUE(x.back() == bad || (x.back() != x.back() && bad != bad)) << Type::kName << " " << bad;
      } else {
        EXPECT_NE(status.error().message.find("weight " + std::to_string(Type::kWeights - 1)), std::string::npos);
      }
      return false;
    });
  }
}

}  // namespace
}  // namespace stoker::quant
