#include "kernels/scalar/exact_fma.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>

namespace stoker::kernels::scalar {
namespace {

void expect_same(float a, float b, float c, float got) {
  const float want = std::fma(a, b, c);
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << a << " " << b << " " << c;
  } else {
    EXPECT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want)) << a << " " << b << " " << c;
  }
}

void expect_same(float a, float b, float c) {
  expect_same(a, b, c, exact_fma(a, b, c));
  const float pair[2] = {1.5f, a};
  float acc[2] = {1.0f, c};
  exact_fma_lanes<2>(pair, b, acc);
  expect_same(a, b, c, acc[1]);
}

TEST(ExactFma, CornersInEveryCombination) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float magnitudes[] = {0.0f,
                              0x1p-149f,
                              0x1.fffffcp-127f,
                              0x1p-126f,
                              0x1p-100f,
                              0x1p-24f,
                              0.5f,
                              1.0f,
                              0x1.000002p0f,
                              0x1.fffffep0f,
                              3.0f,
                              0x1p24f,
                              0x1p100f,
                              0x1.fffffep127f,
                              infinity,
                              std::numeric_limits<float>::quiet_NaN()};
  for (float a : magnitudes) {
    for (float b : magnitudes) {
      for (float c : magnitudes) {
        for (int signs = 0; signs < 8; ++signs) expect_same(signs & 1 ? -a : a, signs & 2 ? -b : b, signs & 4 ? -c : c);
      }
    }
  }
}

TEST(ExactFma, RandomBits) {
  std::mt19937 random(1);
  for (int i = 0; i < 2'000'000; ++i) {
    const auto any = [&] { return std::bit_cast<float>(static_cast<uint32_t>(random())); };
    expect_same(any(), any(), any());
  }
}

// Where rounding to double first and to float second would go wrong: the sum lies near the middle of two floats.
TEST(ExactFma, NearTies) {
  std::mt19937 random(2);
  for (int i = 0; i < 1'000'000; ++i) {
    const float c = std::bit_cast<float>(0x3f800000u + static_cast<uint32_t>(random() % (1u << 23)));
    const float half_ulp = 0x1p-24f, tiny = std::bit_cast<float>(static_cast<uint32_t>(random() % 0x33000000u));
    expect_same(half_ulp, 1.0f + static_cast<float>(random() % 3) * 0x1p-23f, c);
    expect_same(-half_ulp, 1.0f + static_cast<float>(random() % 3) * 0x1p-23f, c);
    expect_same(half_ulp + tiny, 1.0f, c);
    // Into the denormals, where floats have fewer bits.
    expect_same(tiny, 0x1p-40f, std::bit_cast<float>(static_cast<uint32_t>(random() % 0x01000000u)));
  }
}

}  // namespace
}  // namespace stoker::kernels::scalar
