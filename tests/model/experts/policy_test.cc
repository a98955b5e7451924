#include "model/experts/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace stoker::model {
namespace {

using Kind = EvictionPolicy::Kind;
using Keys = std::vector<int32_t>;

TEST(Policy, RecencyTakesTheOneLongestAgo) {
  EvictionPolicy policy(Kind::kRecency, 4);
  for (int64_t key : {2, 0, 3, 1, 2}) policy.use(key, key == 0 ? 1000 : 1);
  EXPECT_EQ(policy.victim(Keys{0, 1, 2, 3}), 0);  // however often it was used
  EXPECT_EQ(policy.victim(Keys{2, 1, 3}), 2);
  policy.use(3);
  EXPECT_EQ(policy.victim(Keys{2, 1, 3}), 1);
}

TEST(Policy, CountsTakeTheOneUsedLeast) {
  EvictionPolicy policy(Kind::kCounts, 4);
  policy.use(0, 3), policy.use(1), policy.use(1), policy.use(2, 4), policy.use(3);
  EXPECT_EQ(policy.victim(Keys{0, 1, 2, 3}), 3);
  EXPECT_EQ(policy.victim(Keys{2, 1, 0}), 1);
  EXPECT_EQ(policy.count(2), 4);
}

TEST(Policy, OfEqualCountsTheOneLongestAgo) {
  EvictionPolicy policy(Kind::kCounts, 3);
  policy.use(1), policy.use(2), policy.use(0);
  EXPECT_EQ(policy.victim(Keys{0, 2, 1}), 2);
  EXPECT_EQ(policy.victim(Keys{0, 2}), 1);
}

TEST(Policy, NegativeKeysAreNoCandidates) {
  EvictionPolicy policy(Kind::kCounts, 3);
  policy.use(1, 5);
  EXPECT_EQ(policy.victim(Keys{-1, 1, -1}), 1);
  EXPECT_EQ(policy.victim(Keys{-1, -1}), -1);
  EXPECT_EQ(policy.victim(Keys{}), -1);
  EXPECT_EQ(policy.victim(Keys{-1, 2, 1}), 1);  // never used
}

TEST(Policy, AHalfLifeHalvesCounts) {
  EvictionPolicy policy(Kind::kCounts, 2);
  policy.use(0, 8);
  for (int token = 0; token < 64; ++token) policy.end_call(1);
  EXPECT_NEAR(policy.count(0), 4, 1e-9);
  policy.end_call(128);  // one long call ages as much as many short ones
  EXPECT_NEAR(policy.count(0), 1, 1e-9);
  policy.use(1);
  policy.use(1);
  EXPECT_EQ(policy.victim(Keys{1, 0}), 1);
  EXPECT_NEAR(policy.count(1), 2, 1e-9);
}

TEST(Policy, RecencyForgetsWhatCountsRemember) {
  // Popular once, then out for a while: counts keep it before one that was used once just now.
  for (Kind kind : {Kind::kRecency, Kind::kCounts}) {
    EvictionPolicy policy(kind, 3);
    policy.use(0, 20);
    policy.end_call(1);
    ASSERT_EQ(policy.victim(Keys{0}), 0);  // evicted: the policy is not told, and counts stay
    for (int64_t key : {1, 2}) {
      policy.use(key);
      policy.end_call(1);
    }
    EXPECT_EQ(policy.victim(Keys{0, 1, 2}), kind == Kind::kCounts ? 1 : 0);
  }
}

TEST(Policy, CountsStayTrueOverManyTokens) {
  // Weights double every 64 tokens: after 21 000 of them they have passed 1e100 and are brought back.
  EvictionPolicy policy(Kind::kCounts, 3);
  double want = 0;
  for (int token = 0; token < 300000; ++token) {
    if (token % 97 == 0) {
      policy.use(0, 2);
      want += 2;
    }
    if (token % 10000 == 0) policy.use(1);
    policy.end_call(1);
    want *= std::exp2(-1.0 / EvictionPolicy::kHalfLife);
    if (token % 12345 == 0) {
      ASSERT_NEAR(policy.count(0), want, 1e-9 * want) << token;
    }
  }
  EXPECT_LT(policy.count(1), policy.count(0));
  EXPECT_EQ(policy.victim(Keys{0, 1, 2}), 2);
  EXPECT_EQ(policy.victim(Keys{0, 1}), 1);
}

TEST(Policy, TheLongestCallLeavesNumbers) {
  EvictionPolicy policy(Kind::kCounts, 2);
  policy.use(0, 1000);
  policy.end_call(int64_t{1} << 21);
  EXPECT_EQ(policy.count(0), 0);
  policy.use(0);
  EXPECT_EQ(policy.count(0), 1);
  EXPECT_EQ(policy.victim(Keys{0, 1}), 1);
}

TEST(Policy, LikelihoodFollowsWhatBringsExpertsBack) {
  // Two layers of four, one expert per token. Expert 0 is popular in both; each other choice is made twice in a row.
  for (const bool repeats : {false, true}) {
    EvictionPolicy policy(Kind::kLikelihood, 8, 64, {.n_experts = 4, .n_used = 1});
    int other = 0;
    for (int token = 0; token < 400; ++token) {
      const bool popular = repeats ? token / 2 % 2 == 0 : token % 2 == 0;
      if (!popular && (!repeats || token % 2 == 0)) other = other % 3 + 1;
      for (int layer = 0; layer < 2; ++layer) policy.use(4 * layer + (popular ? 0 : other));
      policy.end_call(1);
    }
    // The popular one has the largest share, and the one used last is likely again only where choices repeat.
    if (repeats) {
      EXPECT_NEAR(policy.persistence(), 0.3, 0.15);
    } else {
      EXPECT_EQ(policy.persistence(), 0);
    }
    EXPECT_NE(policy.victim(Keys{0, other % 3 + 1}), 0);
    EXPECT_EQ(policy.victim(Keys{other, other % 3 + 1}), 1);
    EXPECT_EQ(policy.victim(Keys{4, other % 3 + 1}), 1);
  }
}

TEST(Policy, LikelihoodStandsUnusedKeysAndLongCalls) {
  EvictionPolicy policy(Kind::kLikelihood, 6, 64, {.n_experts = 3, .n_used = 2});
  EXPECT_EQ(policy.victim(Keys{5, 1}), 0);  // read ahead: nothing was used yet
  for (int64_t key : {0, 1, 2, 3, 4, 5}) policy.use(key, key == 2 ? 100 : 200);
  policy.end_call(350);
  EXPECT_EQ(policy.victim(Keys{0, 1, 2}), 2);
  policy.use(2, 10);
  EXPECT_EQ(policy.victim(Keys{0, 2, 1}), 0);
  policy.end_call(int64_t{1} << 21);
  EXPECT_EQ(policy.persistence(), 0);
  EXPECT_EQ(policy.victim(Keys{2, 3, 4}), 1);
}

constexpr int kLayers = 12, kExperts = 32, kUsed = 4;

/// Experts of one layer for one token, all different, the first ones likelier than the last.
std::vector<int32_t> route(std::mt19937& random, int layer) {
  std::vector<int32_t> keys;
  while (keys.size() < kUsed) {
    const double u = std::generate_canonical<double, 32>(random);
    const auto key = layer * kExperts + static_cast<int32_t>(kExperts * u * u);
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

/// Hits of a cache of so many token cycles, as the store would have them: what a layer wants is not evicted for it.
int hits(Kind kind, double token_cycles) {
  EvictionPolicy policy(kind, kLayers * kExperts);
  std::mt19937 random(5);
  Keys slots(static_cast<size_t>(token_cycles * kLayers * kUsed), -1);
  const auto place = [&](int32_t key) { return std::find(slots.begin(), slots.end(), key); };
  int n_hits = 0;
  for (int token = 0; token < 400; ++token) {
    for (int layer = 0; layer < kLayers; ++layer) {
      const auto keys = route(random, layer);
      Keys candidates = slots;
      for (int32_t key : keys) {
        policy.use(key);
        if (place(key) == slots.end()) continue;
        ++n_hits;
        *std::find(candidates.begin(), candidates.end(), key) = -1;
      }
      for (int32_t key : keys) {
        if (place(key) != slots.end()) continue;
        const auto empty = place(-1);
        const auto at = empty != slots.end() ? static_cast<size_t>(empty - slots.begin())
                                             : static_cast<size_t>(policy.victim(candidates));
        slots[at] = key;
        candidates[at] = -1;
      }
    }
    policy.end_call(1);
  }
  return n_hits;
}

TEST(Policy, BelowOneTokenCycleOnlyCountsHit) {
  const int all = 400 * kLayers * kUsed;
  EXPECT_EQ(hits(Kind::kRecency, 0.9), 0);
  EXPECT_GT(hits(Kind::kCounts, 0.9), all / 10);
  EXPECT_GT(hits(Kind::kCounts, 1.1), all / 10);
  EXPECT_GT(hits(Kind::kCounts, 1.1), hits(Kind::kRecency, 1.1));
  RecordProperty("counts_1_1", hits(Kind::kCounts, 1.1));
  RecordProperty("recency_1_1", hits(Kind::kRecency, 1.1));
}

}  // namespace
}  // namespace stoker::model
