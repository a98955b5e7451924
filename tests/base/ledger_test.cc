#include "base/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

#include "base/str_cat.h"

namespace stoker {
namespace {

constexpr uint64_t kMiB = 1u << 20;

size_t n_lines(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1; }

TEST(Ledger, ChargesComeBackOnDestruction) {
  Ledger ledger(100);
  {
    Result<Charge> charge = ledger.charge("weights", 60);
    ASSERT_TRUE(charge);
    EXPECT_EQ(charge->bytes(), 60u);
    EXPECT_EQ(ledger.used(), 60u);
    EXPECT_EQ(ledger.available(), 40u);
  }
  EXPECT_EQ(ledger.used(), 0u);
  EXPECT_EQ(ledger.available(), 100u);
}

TEST(Ledger, ChargesOfOneNameAddUpAndKeepTheirPeak) {
  Ledger ledger;
  Result<Charge> a = ledger.charge("kv", 10), b = ledger.charge("kv", 20), c = ledger.charge("scratch", 5);
  b->release();
  const auto lines = ledger.lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].name, "kv");
  EXPECT_EQ(lines[0].bytes, 10u);
  EXPECT_EQ(lines[0].peak, 30u);
  EXPECT_EQ(lines[1].bytes, 5u);
}

TEST(Ledger, MovedFromChargesGiveNothingBack) {
  Ledger ledger(100);
  Charge kept;
  {
    Charge first = std::move(ledger.charge("a", 30)).value();
    Charge second = std::move(first);
    EXPECT_EQ(first.bytes(), 0u);  // NOLINT(bugprone-use-after-move): that is the point
    first.release();
    EXPECT_EQ(ledger.used(), 30u);
    kept = std::move(second);
  }
  EXPECT_EQ(ledger.used(), 30u);
  Charge& itself = kept;
  kept = std::move(itself);
  EXPECT_EQ(kept.bytes(), 30u);
  kept = std::move(ledger.charge("b", 10)).value();  // the old one goes back
  EXPECT_EQ(ledger.used(), 10u);
  kept.release();
  kept.release();
  EXPECT_EQ(ledger.used(), 0u);
}

TEST(Ledger, TheLimitItselfFits) {
  Ledger ledger(100);
  Result<Charge> all = ledger.charge("a", 100);
  ASSERT_TRUE(all);
  EXPECT_FALSE(ledger.charge("a", 1));
  EXPECT_TRUE(ledger.charge("a", 0));
}

TEST(Ledger, ARefusalChangesNothingAndHasTheNumbers) {
  Ledger ledger(100 * kMiB);
  Result<Charge> weights = ledger.charge("weights", 80 * kMiB), kv = ledger.charge("kv", 4 * kMiB);
  const Result<Charge> refused = ledger.charge("scratch", 32 * kMiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(refused.error().message,
            "memory limit of 100 MiB: scratch wants 32 MiB, 16 MiB are free; in use:\n"
            "  weights       80 MiB\n"
            "  kv             4 MiB");
  EXPECT_EQ(ledger.used(), 84 * kMiB);
  EXPECT_EQ(ledger.lines().size(), 2u);
}

TEST(Ledger, NoLimitStillRefusesWhatOverflows) {
  Ledger ledger;
  EXPECT_EQ(ledger.available(), std::numeric_limits<uint64_t>::max());
  Result<Charge> some = ledger.charge("a", 10);
  EXPECT_EQ(ledger.available(), std::numeric_limits<uint64_t>::max() - 10);
  const Result<Charge> refused = ledger.charge("b", std::numeric_limits<uint64_t>::max());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message.find("no memory limit: b wants"), 0u) << refused.error().message;
  EXPECT_EQ(ledger.used(), 10u);
}

TEST(Ledger, TablesHaveAtMostTwelveLines) {
  Ledger ledger(1000 * kMiB);
  std::vector<Charge> charges;
  std::vector<Ledger::Line> wanted;
  for (uint64_t i = 1; i <= 40; ++i) {
    charges.push_back(std::move(ledger.charge(str_cat("line", i), i * kMiB)).value());
    wanted.push_back({str_cat("want", i), i * kMiB, 0});
  }
  const std::string message = ledger.charge("more", 1000 * kMiB).error().message;
  EXPECT_LE(n_lines(message), 12u);
  EXPECT_NE(message.find("other (32)"), std::string::npos) << message;
  EXPECT_NE(message.find("528 MiB"), std::string::npos) << message;  // 1 + 2 + ... + 32
  EXPECT_LE(n_lines(ledger.refusal(wanted)), 12u);
}

TEST(Ledger, RefusalTellsTheSmallestLimitThatWorks) {
  Ledger ledger(1024 * kMiB);
  Result<Charge> process = ledger.charge("process", Ledger::kProcessBytes);
  const std::string text = ledger.refusal({{"weights", 2000 * kMiB + 1, 0}, {"process", 2 * kMiB, 0}});
  EXPECT_EQ(text,
            "memory limit of 1 GiB is too small; needed are:\n"
            "  weights        2 GiB\n"
            "  process       26 MiB\n"
            "  together 2 GiB; the smallest limit that works: --memory 2027M");
  // It does work.
  Ledger larger(2051 * kMiB);
  Result<Charge> a = larger.charge("process", Ledger::kProcessBytes + 2 * kMiB);
  EXPECT_TRUE(larger.charge("weights", 2000 * kMiB + 1));
}

TEST(Ledger, ConcurrentChargesNeverPassTheLimit) {
  constexpr uint64_t kLimit = 50;
  Ledger ledger(kLimit);
  std::vector<std::thread> threads;
  std::atomic<int> n_refused{0}, n_given{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 2000; ++i) {
        Result<Charge> charge = ledger.charge(t % 2 == 0 ? "even" : "odd", 1 + i % 30);
        ++(charge ? n_given : n_refused);
        EXPECT_LE(ledger.used(), kLimit);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ledger.used(), 0u);
  EXPECT_EQ(n_given + n_refused, 8000);
  for (const Ledger::Line& line : ledger.lines()) EXPECT_LE(line.peak, kLimit);
}

}  // namespace
}  // namespace stoker
