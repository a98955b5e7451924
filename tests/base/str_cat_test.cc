#include "base/str_cat.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace stoker {
namespace {

TEST(StrCat, JoinsTextAndNumbers) {
  EXPECT_EQ(str_cat("a", std::string("b"), std::string_view("c"), 'd', 1, -2L, uint8_t{3}, true), "abcd1-23true");
  EXPECT_EQ(str_cat(), "");
  EXPECT_EQ(str_cat(std::numeric_limits<uint64_t>::max(), " ", std::numeric_limits<int64_t>::min()),
            "18446744073709551615 -9223372036854775808");
}

TEST(StrCat, NumbersReadBackEqual) {
  EXPECT_EQ(str_cat(0.1, " ", 0.1f, " ", 1e300, " ", 5e-324), "0.1 0.1 1e+300 5e-324");
  EXPECT_EQ(str_cat(std::numeric_limits<double>::infinity(), " ", -1.0), "inf -1");
}

TEST(Quoted, HidesWhatATerminalWouldObey) {
  EXPECT_EQ(quoted("plain text"), "'plain text'");
  EXPECT_EQ(quoted("\x1b[2J\n\xff\\"), "'\\x1b[2J\\x0a\\xff\\x5c'");
  EXPECT_EQ(quoted(std::string_view("a\0b", 3)), "'a\\x00b'");
}

TEST(Quoted, CutsLongText) {
  EXPECT_EQ(quoted("123456", 4), "'1234...'");
  EXPECT_EQ(quoted("1234", 4), "'1234'");
}

}  // namespace
}  // namespace stoker
