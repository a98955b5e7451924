// What encoders promise: small errors on ordinary rows, and finite weights on all others.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <random>

#include "quant/all.h"

namespace stoker::quant {
namespace {

std::vector<float> round_trip(gguf::TensorType type, const std::vector<float>& x, size_t block_bytes, size_t weights) {
  std::vector<std::byte> bytes(x.size() / weights * block_bytes);
  EXPECT_TRUE(quantize_row(type, x, bytes));
  std::vector<float> out(x.size());
  EXPECT_TRUE(dequantize_row(type, bytes, static_cast<int64_t>(x.size()), out.data()));
  return out;
}

template <class Type>
std::vector<float> round_trip(const std::vector<float>& x) {
  return round_trip(Type::kType, x, sizeof(typename Type::Block), Type::kWeights);
}

double rms(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

std::vector<float> gaussian(size_t n, float size, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, size);
  std::vector<float> x(n);
  for (float& value : x) value = normal(random);
  return x;
}

template <class F>
void for_scaled_types(F&& f) {
  BlockQuants::any([&]<class Type>() { return f.template operator()<Type>(), false; });
  SuperQuants::any([&]<class Type>() { return f.template operator()<Type>(), false; });
}

// Relative error on gaussian rows, at most 1 % above what was measured when the encoders were written.
TEST(Encode, GaussianRows) {
  const std::map<std::string_view, double> bounds = {
      {"Q4_0", 0.08725},   {"Q4_1", 0.07902},  {"Q5_0", 0.04360},  {"Q5_1", 0.03830}, {"Q8_0", 0.00545},
      {"IQ4_NL", 0.07579}, {"MXFP4", 0.11664}, {"Q2_K", 0.26416},  {"Q3_K", 0.14468}, {"Q4_K", 0.07066},
      {"Q5_K", 0.03478},   {"Q6_K", 0.01751},  {"IQ4_XS", 0.07623}};
  const std::vector<float> x = gaussian(256 * 64, 0.02f, 1);
  for_scaled_types([&]<class Type>() {
    const double error = rms(x, round_trip<Type>(x)) / 0.02;
    EXPECT_LT(error, 1.01 * bounds.at(Type::kName)) << Type::kName;
  });
}

// A row of 256 values without structure, and the errors that the encoders in common use leave on it.
TEST(Encode, NoWorseThanOthers) {
  const std::map<std::string_view, double> others = {
      {"Q4_0", 0.078130},   {"Q4_1", 0.071611},  {"Q5_0", 0.036495},  {"Q5_1", 0.034061}, {"Q8_0", 0.004111},
      {"IQ4_NL", 0.075371}, {"MXFP4", 0.150146}, {"Q2_K", 0.276071},  {"Q3_K", 0.116937}, {"Q4_K", 0.065427},
      {"Q5_K", 0.033641},   {"Q6_K", 0.016050},  {"IQ4_XS", 0.075871}};
  std::vector<float> x(256);
  for (int i = 0; i < 256; ++i) x[static_cast<size_t>(i)] = static_cast<float>((73 * i + 19) % 257 - 128) / 64;
  for_scaled_types([&]<class Type>() {
    const double error = rms(x, round_trip<Type>(x));
    EXPECT_LT(error, others.at(Type::kName) + 6e-7) << Type::kName;
  });
}

// Scaling a row by a power of two scales what comes back, as long as f16 scales have all their bits.
TEST(Encode, PowersOfTwoChangeNothing) {
  const std::vector<float> x = gaussian(1024, 1.0f, 2);
  for_scaled_types([&]<class Type>() {
    const std::vector<float> want = round_trip<Type>(x);
    for (float power : {0x1p-3f, 0x1p6f}) {
      std::vector<float> scaled = x;
      for (float& value : scaled) value *= power;
      const std::vector<float> got = round_trip<Type>(scaled);
      for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], want[i] * power) << Type::kName << " " << power;
    }
  });
}

TEST(Encode, ZerosStayZero) {
  for_scaled_types([]<class Type>() {
    for (float zero : {0.0f, -0.0f}) {
      for (float value : round_trip<Type>(std::vector<float>(512, zero))) ASSERT_EQ(value, 0.0f) << Type::kName;
    }
  });
}

std::vector<std::vector<float>> strange_rows() {
  constexpr float kMax = std::numeric_limits<float>::max();
  std::vector<std::vector<float>> rows;
  for (float value : {1e-45f, 1e-40f, 1e-30f, 0x1p-26f, 0x1p-25f, 0x1p-24f, 6e-5f, 1.0f, 65504.0f, 65520.0f, 7e4f, 1e6f,
                      1e8f, 1e20f, 1e38f, kMax}) {
    for (float sign : {1.0f, -1.0f}) rows.emplace_back(256, sign * value);
    rows.emplace_back(256, 0.0f);
    for (size_t i = 0; i < 256; i += 2) rows.back()[i] = value;
    rows.emplace_back(256, value);
    for (size_t i = 0; i < 256; i += 3) rows.back()[i] = -value;
    rows.emplace_back(256, 0.0f);
    rows.back()[200] = -value;
    rows.push_back(gaussian(256, 1.0f, 3));
    rows.back()[17] = value;
    // Each sub-block in another order of magnitude.
    rows.emplace_back();
    for (int i = 0; i < 256; ++i) {
      const float size = std::ldexp(value, -5 * (i / 16)), sign = i % 3 == 0 ? -1.0f : 1.0f;
      rows.back().push_back(sign * size);
    }
  }
  std::mt19937 random(4);
  for (int row = 0; row < 200; ++row) {
    rows.emplace_back();
    while (rows.back().size() < 256) {
      const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
      if (std::fabs(value) <= kMax) rows.back().push_back(value);
    }
  }
  return rows;
}

TEST(Encode, FiniteInFiniteOut) {
  for (const std::vector<float>& row : strange_rows()) {
    AllQuants::any([&]<class Type>() {
      const std::vector<float> out = round_trip<Type>(row);
      float largest_in = 0, largest_out = 0;
      for (size_t i = 0; i < row.size(); ++i) {
        EXPECT_TRUE(std::fabs(out[i]) <= std::numeric_limits<float>::max())
            << Type::kName << " weight " << i << " of " << row[i] << ": " << out[i];
        largest_in = std::max(largest_in, std::fabs(row[i]));
        largest_out = std::max(largest_out, std::fabs(out[i]));
      }
      // Nothing blows up either: no more than a level beyond the largest weight, and f16's smallest step.
      EXPECT_LE(largest_out, 1.34f * largest_in + 0x1p-24f) << Type::kName;
      return false;
    });
  }
}

// What lies beyond every scale saturates and keeps its sign.
TEST(Encode, HugeValuesSaturate) {
  for_scaled_types([]<class Type>() {
    std::vector<float> x(256, 1e30f);
    for (size_t i = 0; i < 256; i += 2) x[i] = -1e30f;
    const std::vector<float> out = round_trip<Type>(x);
    for (size_t i = 0; i < 256; ++i) {
      EXPECT_GE(std::fabs(out[i]), 65504.0f) << Type::kName << " " << i;
      EXPECT_EQ(out[i] < 0, x[i] < 0) << Type::kName << " " << i;
    }
  });
}

TEST(Encode, PlainTypesRoundAndSaturate) {
  const auto one = []<class Type>(float x, Type) { return Type::value(Type::encode(x)); };
  EXPECT_EQ(one(1e30f, F16{}), 65504.0f);
  EXPECT_EQ(one(-3.4e38f, BF16{}), -0x1.fep127f);
  EXPECT_EQ(one(1.004f, BF16{}), 1.0078125f);
  EXPECT_EQ(one(2.5f, I8{}), 2.0f);
  EXPECT_EQ(one(-300.0f, I8{}), -128.0f);
  EXPECT_EQ(one(1e9f, I16{}), 32767.0f);
  EXPECT_EQ(one(3e9f, I32{}), 2147483648.0f);  // 2147483647 as a float
  EXPECT_EQ(I32::encode(3e9f).value, 2147483647);
  EXPECT_EQ(one(0.1f, F64{}), 0.1f);
}

}  // namespace
}  // namespace stoker::quant
