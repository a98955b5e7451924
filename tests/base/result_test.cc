#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace stoker {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return Error{ErrorCode::kInvalidArgument, "odd"};
  return x / 2;
}

Result<int> quarter(int x) {
  STOKER_TRY(const int first, half(x));
  STOKER_TRY(int second, half(first));
  return second;
}

Status check_even(int x) {
  STOKER_TRY_STATUS(half(x));
  return Ok{};
}

TEST(Result, TryReturnsTheValueOrTheError) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_EQ(quarter(5).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(check_even(2).has_value());
  EXPECT_FALSE(check_even(3));
}

TEST(Result, CarriesMoveOnlyValues) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  std::unique_ptr<int> value = std::move(result).value();
  EXPECT_EQ(*value, 7);
}

TEST(ResultDeathTest, WrongAccessAborts) {
  EXPECT_DEATH(half(1).value(), "internal error: has_value\\(\\) failed at .*result.h");
  EXPECT_DEATH((void)half(2).error(), "internal error");
}

TEST(CheckDeathTest, NamesConditionAndPlace) {
  const int x = 1;
  STOKER_CHECK(x == 1);
  EXPECT_DEATH(STOKER_CHECK(x == 2), "x == 2 failed at .*result_test.cc:[0-9]+; please report it");
}

}  // namespace
}  // namespace stoker
