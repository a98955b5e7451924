#include "quant/half.h"

#include <gtest/gtest.h>

namespace stoker::quant {
namespace {

TEST(Half, FiniteNeverBecomesInfinite) {
  for (float value : {65504.0f, 65519.0f, 65520.0f, 65536.0f, 1e10f, kLargestFloat}) {
    EXPECT_EQ(f16_to_f32(finite_half(value)), 65504.0f) << value;
    EXPECT_EQ(f16_to_f32(finite_half(-value)), -65504.0f) << value;
  }
  // Up to the border it rounds as any conversion does.
  EXPECT_EQ(finite_half(1.0f), 0x3c00);
  EXPECT_EQ(finite_half(65488.0f), f32_to_f16(65488.0f));
  EXPECT_EQ(finite_half(0x1p-25f), 0);
}

TEST(Half, InversesAreFinite) {
  EXPECT_EQ(inverse_or_zero(0.0f), 0.0f);
  EXPECT_EQ(inverse_or_zero(-0.0f), 0.0f);
  EXPECT_EQ(inverse_or_zero(0x1p-149f), 0.0f);
  EXPECT_EQ(inverse_or_zero(0x1p-126f), 0x1p126f);
  EXPECT_EQ(inverse_or_zero(-4.0f), -0.25f);
}

TEST(Half, NearestTiesToEven) {
  EXPECT_EQ(nearest(0.5f), 0);
  EXPECT_EQ(nearest(1.5f), 2);
  EXPECT_EQ(nearest(-2.5f), -2);
  EXPECT_EQ(nearest(-0.50001f), -1);
  EXPECT_EQ(nearest(4000000.0f), 4000000);
  EXPECT_EQ(nearest_within(1e30f, -4, 3), 3);
  EXPECT_EQ(nearest_within(-1e30f, -4, 3), -4);
}

}  // namespace
}  // namespace stoker::quant
