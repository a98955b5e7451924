#include "model/lookahead_trial.h"

#include <gtest/gtest.h>

namespace stoker::model {
namespace {

constexpr auto kTrialCalls = static_cast<int64_t>(2 * LookaheadTrial::kRounds);

/// Runs a trial in which calls without and with guesses take so long; how many of its calls guessed.
int64_t run_trial(LookaheadTrial& trial, uint64_t plain_ns, uint64_t guessing_ns, int64_t n_rows = 1) {
  int64_t n = 0;
  for (int64_t i = 0; i < kTrialCalls; ++i) {
    const bool guesses = trial.begin(n_rows);
    n += guesses;
    trial.end(guesses ? guessing_ns : plain_ns);
  }
  return n;
}

TEST(LookaheadTrial, TheFasterWayIsKeptAndTriedAgain) {
  LookaheadTrial trial;
  uint64_t guessing_ns = 90;
  for (const bool wins : {true, false, true}) {
    EXPECT_EQ(run_trial(trial, 100, guessing_ns), kTrialCalls / 2);
    for (int64_t i = 0; i < LookaheadTrial::kCalls; ++i) {
      ASSERT_EQ(trial.begin(1), wins) << i;
      trial.end(100);
    }
    guessing_ns = wins ? 99 : 50;  // Next: a close race is lost.
  }
}

TEST(LookaheadTrial, AFewSlowCallsDoNotDecide) {
  LookaheadTrial trial;
  for (int64_t i = 0; i < kTrialCalls; ++i) {
    const bool guesses = trial.begin(1);
    trial.end(guesses ? (i < kTrialCalls / 3 ? 100'000 : 90) : 100);
  }
  EXPECT_TRUE(trial.begin(1));
}

TEST(LookaheadTrial, OnlyCallsOfAsManyTokensAreCompared) {
  LookaheadTrial trial;
  run_trial(trial, 100, 90);
  ASSERT_TRUE(trial.begin(1));
  EXPECT_FALSE(trial.begin(512));  // a prompt: no guesses, and nothing to learn
  trial.end(1'000'000);
  EXPECT_TRUE(trial.begin(1));
  EXPECT_EQ(run_trial(trial, 100, 120, 4), kTrialCalls / 2);
  EXPECT_FALSE(trial.begin(4));
}

TEST(LookaheadTrial, ACallThatFailsCountsForNothing) {
  LookaheadTrial trial;
  EXPECT_FALSE(trial.begin(1));
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(trial.begin(1));
  EXPECT_EQ(run_trial(trial, 100, 90), kTrialCalls / 2);
  EXPECT_TRUE(trial.begin(1));
}

}  // namespace
}  // namespace stoker::model
