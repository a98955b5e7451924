#include "base/log.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <thread>
#include <vector>

namespace stoker {
namespace {

struct LevelScope {
  explicit LevelScope(LogLevel level) { set_log_level(level); }
  ~LevelScope() { set_log_level(LogLevel::kWarn); }
};

std::string written(LogLevel level) {
  const LevelScope scope(level);
  testing::internal::CaptureStderr();
  log_warn("w", 1);
  log_info("i", 2);
  log_debug("d", 3);
  return testing::internal::GetCapturedStderr();
}

TEST(Log, Levels) {
  EXPECT_EQ(written(LogLevel::kQuiet), "");
  EXPECT_EQ(written(LogLevel::kWarn), "stoker: warning: w1\n");
  EXPECT_EQ(written(LogLevel::kInfo), "stoker: warning: w1\nstoker: i2\n");
  EXPECT_EQ(written(LogLevel::kDebug), "stoker: warning: w1\nstoker: i2\nstoker: debug: d3\n");
}

TEST(Log, OneMessageIsOneLine) {
  testing::internal::CaptureStderr();
  log_warn("a\nb\r\x1b[31mc\x7f");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "stoker: warning: a b  [31mc \n");
}

TEST(Log, ThreadsDoNotMixTheirLines) {
  testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) log_warn(std::string(100, static_cast<char>('a' + t)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::istringstream lines(testing::internal::GetCapturedStderr());
  std::set<std::string> kinds;
  int n = 0;
  for (std::string line; std::getline(lines, line); ++n) kinds.insert(line);
  EXPECT_EQ(n, 800);
  EXPECT_EQ(kinds.size(), 4u);
}

}  // namespace
}  // namespace stoker
