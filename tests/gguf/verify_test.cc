#include "gguf/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "gguf/byte_order.h"

namespace stoker::gguf {
namespace {

constexpr uint16_t kInf16 = 0x7c00, kNan16 = 0xfe01;

/// Ten blocks of zeros with `value` put into block 3 and block 7.
template <class T>
std::optional<Fault> with(TensorType type, size_t offset, T value) {
  const auto block = static_cast<size_t>(type_info(type)->n_bytes);
  std::vector<std::byte> bytes(10 * block);
  for (size_t i : {3u, 7u}) store(value, false, bytes.data() + i * block + offset);
  return verify_tensor(type, bytes);
}

template <class T>
void expect_fault(TensorType type, size_t offset, T value, std::string_view reason) {
  const std::optional<Fault> fault = with(type, offset, value);
  ASSERT_TRUE(fault) << type_name(type) << " at " << offset;
  EXPECT_EQ(fault->block, 3u) << type_name(type);
  EXPECT_EQ(fault->n_blocks, 2u) << type_name(type);
  EXPECT_EQ(fault->reason, reason) << type_name(type);
}

TEST(Verify, ElementsAreFinite) {
  expect_fault(TensorType::kF32, 0, std::numeric_limits<float>::infinity(), "an element is infinite");
  expect_fault(TensorType::kF32, 0, -std::numeric_limits<float>::quiet_NaN(), "an element is NaN");
  expect_fault(TensorType::kF64, 0, -std::numeric_limits<double>::infinity(), "an element is infinite");
  expect_fault(TensorType::kF64, 0, std::numeric_limits<double>::quiet_NaN(), "an element is NaN");
  expect_fault(TensorType::kF16, 0, kInf16, "an element is infinite");
  expect_fault(TensorType::kF16, 0, kNan16, "an element is NaN");
  expect_fault(TensorType::kBF16, 0, uint16_t{0xff80}, "an element is infinite");
  expect_fault(TensorType::kBF16, 0, uint16_t{0x7f81}, "an element is NaN");
  EXPECT_FALSE(with(TensorType::kF32, 0, std::numeric_limits<float>::max()));
  EXPECT_FALSE(with(TensorType::kF32, 0, std::numeric_limits<float>::denorm_min()));
  EXPECT_FALSE(with(TensorType::kF16, 0, uint16_t{0xfbff}));
  EXPECT_FALSE(with(TensorType::kBF16, 0, uint16_t{0x7f7f}));
}

TEST(Verify, EveryScaleIsLookedAt) {
  struct Case {
    TensorType type;
    std::vector<size_t> offsets;
  };
  const Case cases[] = {
      {TensorType::kQ4_0, {0}},     {TensorType::kQ4_1, {0, 2}}, {TensorType::kQ5_0, {0}},
      {TensorType::kQ5_1, {0, 2}},  {TensorType::kQ8_0, {0}},    {TensorType::kQ8_1, {0, 2}},
      {TensorType::kQ2K, {80, 82}}, {TensorType::kQ3K, {108}},   {TensorType::kQ4K, {0, 2}},
      {TensorType::kQ5K, {0, 2}},   {TensorType::kQ6K, {208}},   {TensorType::kIQ2XXS, {0}},
      {TensorType::kIQ2XS, {0}},    {TensorType::kIQ2S, {0}},    {TensorType::kIQ3XXS, {0}},
      {TensorType::kIQ3S, {0}},     {TensorType::kIQ1S, {0}},    {TensorType::kIQ4NL, {0}},
      {TensorType::kIQ4XS, {0}},    {TensorType::kTQ1_0, {52}},  {TensorType::kTQ2_0, {64}},
      {TensorType::kQ1_0, {0}},     {TensorType::kQ2_0, {0}},
  };
  for (const Case& c : cases) {
    const auto block = static_cast<size_t>(type_info(c.type)->n_bytes);
    for (size_t offset = 0; offset + 2 <= block; offset += 2) {
      const bool is_scale = std::find(c.offsets.begin(), c.offsets.end(), offset) != c.offsets.end();
      EXPECT_EQ(with(c.type, offset, kInf16).has_value(), is_scale) << type_name(c.type) << " at " << offset;
      EXPECT_EQ(with(c.type, offset, kNan16).has_value(), is_scale) << type_name(c.type) << " at " << offset;
    }
  }
  expect_fault(TensorType::kQ6K, 208, kNan16, "d is NaN");
  expect_fault(TensorType::kQ4K, 2, kInf16, "d or dmin is infinite");
  expect_fault(TensorType::kQ8K, 0, std::numeric_limits<float>::quiet_NaN(), "d is NaN");
}

TEST(Verify, SpecialScales) {
  expect_fault(TensorType::kMXFP4, 0, uint8_t{0xff}, "the exponent is NaN");
  EXPECT_FALSE(with(TensorType::kMXFP4, 0, uint8_t{0xfe}));
  EXPECT_FALSE(with(TensorType::kMXFP4, 1, uint8_t{0xff}));
  for (size_t scale = 0; scale < 4; ++scale) {
    expect_fault(TensorType::kNVFP4, scale, uint8_t{0x7f}, "a scale is NaN");
    expect_fault(TensorType::kNVFP4, scale, uint8_t{0xff}, "a scale is NaN");
    EXPECT_FALSE(with(TensorType::kNVFP4, scale, uint8_t{0x7e}));
  }
  // IQ1_M: the bits of the half float are the top nibbles of four words, lowest first.
  expect_fault(TensorType::kIQ1M, 48, uint64_t{0x7000'c000'0000'0000}, "d is infinite");
  expect_fault(TensorType::kIQ1M, 48, uint64_t{0x7000'c000'0000'1000}, "d is NaN");
  EXPECT_FALSE(with(TensorType::kIQ1M, 48, uint64_t{0x7fff'bfff'ffff'ffff}));
}

TEST(Verify, OtherTypesPass) {
  const std::vector<std::byte> bytes(64, std::byte{0xff});
  for (TensorType type : {TensorType::kI8, TensorType::kI16, TensorType::kI32, TensorType::kI64})
    EXPECT_FALSE(verify_tensor(type, bytes));
  EXPECT_FALSE(verify_tensor(static_cast<TensorType>(156), bytes));
  EXPECT_FALSE(verify_tensor(TensorType::kF32, {}));
}

}  // namespace
}  // namespace stoker::gguf
