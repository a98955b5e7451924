#include "quant/search.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "quant/iq4.h"

namespace stoker::quant {
namespace {

TEST(LevelSet, ClosestOfATable) {
  const LevelSet levels{.lo = -127, .hi = 113, .table = kIq4Levels};
  for (int tenth = -2000; tenth <= 2000; ++tenth) {
    const float value = static_cast<float>(tenth) / 10;
    const int got = levels.closest(value);
    int want = kIq4Levels[0];
    for (int level : kIq4Levels) {
      // Of two as close, the upper one.
      if (std::fabs(static_cast<float>(level) - value) <= std::fabs(static_cast<float>(want) - value)) want = level;
    }
    EXPECT_EQ(got, want) << value;
  }
  EXPECT_EQ(levels.closest(-1e30f), -127);
  EXPECT_EQ(levels.closest(1e30f), 113);
}

TEST(LevelSet, ClosestInteger) {
  const LevelSet levels{.lo = -4, .hi = 3};
  EXPECT_EQ(levels.closest(-3.6f), -4);
  EXPECT_EQ(levels.closest(9.0f), 3);
  EXPECT_EQ(levels.closest(-9.0f), -4);
  EXPECT_EQ(levels.closest(0.4f), 0);
}

TEST(FitScale, FindsTheScaleOfExactLevels) {
  const LevelSet levels{.lo = -32, .hi = 31};
  float x[32];
  for (int i = 0; i < 32; ++i) x[i] = 0.375f * static_cast<float>(i * 7 % 64 - 32);
  int8_t q[32];
  EXPECT_EQ(fit_scale(x, 32, levels, q), 0.375f);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(q[i], i * 7 % 64 - 32);
}

TEST(FitScale, ZerosHaveNoScale) {
  const float x[16] = {};
  int8_t q[16];
  EXPECT_EQ(fit_scale(x, 16, {.lo = -4, .hi = 3}, q), 0.0f);
  for (int8_t level : q) EXPECT_EQ(level, 0);
}

// One sub-block next to nothing beside the others, where 1 / scale overflows (found by UBSan: NaN as a level).
TEST(FitOffset, FlatSubBlocks) {
  float x[256] = {1.0f};
  for (int i = 32; i < 256; ++i) x[i] = i % 2 ? 0x1p-127f : 0.0f;
  OffsetBlock offset;
  fit_offset(x, 32, 15, 63, offset);
  ScaledBlock scaled;
  fit_scaled(x, 16, {.lo = -32, .hi = 31}, -128, 127, scaled);
  for (int i = 32; i < 256; ++i) {
    EXPECT_EQ(offset.scales[i / 32] * offset.q[i], 0) << i;
    EXPECT_EQ(scaled.scales[i / 16] * scaled.q[i], 0) << i;
  }
}

// Weights that a block can hold exactly come back exactly, whatever way the search takes.
TEST(FitOffset, ExactBlockComesBack) {
  float x[256];
  for (int i = 0; i < 256; ++i) {
    const int scale = 63 - i / 32, min = 63 - 7 * (i / 32);
    x[i] = 0.25f * static_cast<float>(scale * (i % 16)) - 0.5f * static_cast<float>(min);
  }
  OffsetBlock block;
  fit_offset(x, 32, 15, 63, block);
  const float d = f16_to_f32(block.d), dmin = f16_to_f32(block.dmin);
  for (int i = 0; i < 256; ++i) {
    const int j = i / 32;
    EXPECT_EQ(d * static_cast<float>(block.scales[j] * block.q[i]) - dmin * static_cast<float>(block.mins[j]), x[i]);
  }
}

TEST(FitScaled, ExactBlockComesBack) {
  float x[256];
  for (int i = 0; i < 256; ++i) x[i] = 0.125f * static_cast<float>((i / 16 * 3 - 32) * (i % 8 - 4));
  ScaledBlock block;
  fit_scaled(x, 16, {.lo = -4, .hi = 3}, -32, 31, block);
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(f16_to_f32(block.d) * static_cast<float>(block.scales[i / 16] * block.q[i]), x[i]) << i;
  }
}

TEST(UnitRange, ScalesStayUsable) {
  float y[2];
  UnitRange range;
  const float tiny[2] = {0x1p-26f, -0x1p-30f};
  EXPECT_FALSE(range.from(tiny, 2, y));
  const float huge[2] = {0x1.8p127f, -1.0f};
  ASSERT_TRUE(range.from(huge, 2, y));
  EXPECT_EQ(y[0], 1.5f);
  EXPECT_EQ(f16_to_f32(range.half(0.01f)), 65504.0f);
  EXPECT_EQ(f16_to_f32(range.half(-0.01f)), -65504.0f);
  const float small[2] = {0x1p-25f, 0.0f};
  ASSERT_TRUE(range.from(small, 2, y));
  EXPECT_EQ(f16_to_f32(range.half(0.001f)), 0x1p-24f);
  EXPECT_EQ(range.half(0.0f), 0);
}

}  // namespace
}  // namespace stoker::quant
