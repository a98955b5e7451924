#include "base/f16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker {
namespace {

[[maybe_unused]] uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }

/// The value of a half by its definition in IEEE 754.
double value_of(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const double magnitude = exponent == 0    ? std::ldexp(fraction, -24)
                           : exponent == 31 ? std::numeric_limits<double>::infinity()
                                            : std::ldexp(1024 + fraction, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_nan(uint16_t half) { return (half & 0x7fff) > 0x7c00; }

TEST(F16, EveryHalfHasItsValueAndComesBack) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const auto half = static_cast<uint16_t>(h);
    const float x = f16_to_f32(half);
    if (is_nan(half)) {
      ASSERT_TRUE(std::isnan(x)) << h;
      ASSERT_EQ(f32_to_f16(x), half | 0x200) << h;  // quiet, payload kept
    } else {
      ASSERT_EQ(x, value_of(half)) << h;
      ASSERT_EQ(std::signbit(x), h >= 32768) << h;
      ASSERT_EQ(f32_to_f16(x), half) << h;
    }
  }
}

TEST(F16, RoundsToNearestTiesToEvenAtEveryBorder) {
  for (uint32_t h = 0; h < 0x7c00; ++h) {
    const auto low = static_cast<uint16_t>(h), high = static_cast<uint16_t>(h + 1);
    // Above the largest half the next one would be 65536: 65520 is the border to infinity.
    const double next = high == 0x7c00 ? 65536.0 : value_of(high);
    const auto border = static_cast<float>((value_of(low) + next) / 2);  // exact: one bit more than a half
    const float below = std::nextafterf(border, 0.f), above = std::nextafterf(border, 1e9f);
    for (uint16_t sign : {uint16_t{0}, uint16_t{0x8000}}) {
      const float s = sign != 0 ? -1.f : 1.f;
      ASSERT_EQ(f32_to_f16(s * below), low | sign) << h;
      ASSERT_EQ(f32_to_f16(s * border), ((h & 1) != 0 ? high : low) | sign) << h;
      ASSERT_EQ(f32_to_f16(s * above), high | sign) << h;
    }
  }
}

TEST(F16, Extremes) {
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::infinity()), 0x7c00);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::max()), 0xfc00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(f32_to_f16(-0.f), 0x8000);
  EXPECT_EQ(f32_to_f16(std::bit_cast<float>(0x7f800001u)), 0x7e00);  // a signalling NaN
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) uint16_t hardware_half(float x) {
  return static_cast<uint16_t>(_mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(x), 0)));
}
__attribute__((target("f16c"))) uint32_t hardware_float(uint16_t half) { return bits(_cvtsh_ss(half)); }

TEST(F16, SameBitsAsTheHardware) {
  if (available_isas().size() == 1) GTEST_SKIP() << "this CPU has no F16C";
  for (uint32_t h = 0; h < 65536; ++h) {
    ASSERT_EQ(bits(f16_to_f32(static_cast<uint16_t>(h))), hardware_float(static_cast<uint16_t>(h))) << h;
  }
  // All f32 whose low bits are of the rounding's kinds: all high halves times 16 low ones.
  for (uint32_t high = 0; high < 65536; ++high) {
    for (uint32_t low : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x1fffu, 0x2000u, 0x3000u, 0x5000u, 0x7fffu,
                         0x8000u, 0x8001u, 0x9000u, 0xd000u, 0xefffu, 0xffffu}) {
      const auto x = std::bit_cast<float>(high << 16 | low);
      ASSERT_EQ(f32_to_f16(x), hardware_half(x)) << std::hex << bits(x);
    }
  }
  std::mt19937 random(1);
  for (int i = 0; i < 3000000; ++i) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(random()));
    ASSERT_EQ(f32_to_f16(x), hardware_half(x)) << std::hex << bits(x);
  }
}
#endif

TEST(Bf16, EveryPatternComesBack) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const auto half = static_cast<uint16_t>(h);
    const bool nan = (half & 0x7fff) > 0x7f80;
    ASSERT_EQ(f32_to_bf16(bf16_to_f32(half)), nan ? half | 0x40 : half) << h;
  }
}

TEST(Bf16, RoundsToNearestTiesToEven) {
  for (uint32_t h = 0; h < 0x7f80; ++h) {
    for (uint32_t sign : {0u, 0x8000u}) {
      const uint32_t base = (h | sign) << 16;
      ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(base | 0x7fffu)), h | sign);
      ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(base | 0x8000u)), (h + (h & 1)) | sign);
      ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(base | 0x8001u)), (h + 1) | sign);
    }
  }
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7f800001u)), 0x7fc0);  // NaN does not become infinity
}

}  // namespace
}  // namespace stoker
