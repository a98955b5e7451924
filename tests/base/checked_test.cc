#include "base/checked.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace stoker {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TEST(Checked, Add) {
  EXPECT_EQ(checked_add<uint64_t>(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_add<uint64_t>(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_add<int32_t>(std::numeric_limits<int32_t>::min(), -1), std::nullopt);
}

TEST(Checked, Mul) {
  EXPECT_EQ(checked_mul<uint64_t>(1ull << 32, (1ull << 32) - 1), (1ull << 32) * ((1ull << 32) - 1));
  EXPECT_EQ(checked_mul<uint64_t>(1ull << 32, 1ull << 32), std::nullopt);
  EXPECT_EQ(checked_mul<int64_t>(std::numeric_limits<int64_t>::min(), -1), std::nullopt);
}

TEST(Checked, RoundUp) {
  EXPECT_EQ(checked_round_up<uint64_t>(0, 32), 0u);
  EXPECT_EQ(checked_round_up<uint64_t>(33, 32), 64u);
  EXPECT_EQ(checked_round_up<uint64_t>(64, 32), 64u);
  EXPECT_EQ(checked_round_up<uint64_t>(10, 7), 14u);
  EXPECT_EQ(checked_round_up<uint64_t>(kMax - 1, 32), std::nullopt);
  EXPECT_EQ(round_up(33, 32), 64);
}

TEST(Checked, Cast) {
  EXPECT_EQ((checked_cast<int32_t>(kMax)), std::nullopt);
  EXPECT_EQ((checked_cast<uint8_t>(-1)), std::nullopt);
  EXPECT_EQ((checked_cast<uint8_t>(255)), 255);
  EXPECT_EQ((checked_cast<int64_t>(kMax >> 1)), std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace stoker
