#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace stoker::engine {
namespace {

constexpr SamplerOptions kOff{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 42};

/// How often each token is drawn at positions 0 ... n - 1.
std::map<int32_t, int> histogram(const SamplerOptions& options, const std::vector<float>& logits, int n) {
  Sampler sampler(options);
  std::map<int32_t, int> counts;
  for (int position = 0; position < n; ++position)
    ++counts[sampler.sample(logits.data(), static_cast<int64_t>(logits.size()), position)];
  return counts;
}

TEST(Sampler, GreedyTakesTheLowestIdOfEquals) {
  const std::vector<float> logits{1, 5, 3, 5, -INFINITY};
  for (double temperature : {0.0, 9e-6}) {
    Sampler sampler({.temperature = temperature, .top_k = 1, .top_p = 0.1, .min_p = 0.9});
    EXPECT_EQ(sampler.sample(logits.data(), 5, 7), 1);
  }
}

TEST(Sampler, TopOneIsGreedyAtAnyTemperature) {
  SamplerOptions options = kOff;
  options.top_k = 1;
  options.temperature = 100;
  EXPECT_EQ(histogram(options, {1, 5, 3, 5}, 50), (std::map<int32_t, int>{{1, 50}}));
}

TEST(Sampler, DrawsFollowTheSoftmax) {
  const std::vector<float> logits{0, std::log(2.0f), std::log(5.0f)};  // 1/8, 2/8, 5/8
  constexpr int kDraws = 80000;
  for (int64_t top_k : {0, 3}) {
    SamplerOptions options = kOff;
    options.top_k = top_k;
    const auto counts = histogram(options, logits, kDraws);
    const double want[] = {0.125, 0.25, 0.625};
    for (int32_t id = 0; id < 3; ++id) {
      const double sigma = std::sqrt(want[id] * (1 - want[id]) * kDraws);
      EXPECT_NEAR(counts.at(id), want[id] * kDraws, 5 * sigma) << id;  // five standard deviations: 1 in 2 million
    }
  }
}

TEST(Sampler, TemperatureSharpens) {
  SamplerOptions options = kOff;
  options.temperature = 0.5;  // squares the ratios: 1 to 4
  const auto counts = histogram(options, {0, std::log(2.0f)}, 50000);
  EXPECT_NEAR(counts.at(1), 40000, 5 * std::sqrt(0.8 * 0.2 * 50000));
}

TEST(Sampler, TopKKeepsKAndZeroIsOff) {
  SamplerOptions options = kOff;
  options.temperature = 50;  // nearly uniform over what is left
  options.top_k = 2;
  auto counts = histogram(options, {1, 4, 2, 3}, 2000);
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_TRUE(counts.contains(1) && counts.contains(3));
  options.top_k = 0;
  EXPECT_EQ(histogram(options, {1, 4, 2, 3}, 2000).size(), 4u);
  options.top_k = 100;
  EXPECT_EQ(histogram(options, {1, 4, 2, 3}, 2000).size(), 4u);
  options.top_k = 2;  // equal logits at the border: the lower id stays
  counts = histogram(options, {3, 3, 3, 5}, 2000);
  EXPECT_TRUE(counts.size() == 2 && counts.contains(0) && counts.contains(3));
}

TEST(Sampler, TopPKeepsTheTokenThatCrosses) {
  const std::vector<float> logits{std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
  SamplerOptions options = kOff;
  for (auto [p, n] : {std::pair{0.0, 1u}, {0.4, 1u}, {0.6, 2u}, {0.9, 3u}, {0.97, 4u}, {1.0, 4u}}) {
    options.top_p = p;
    options.temperature = 5;
    EXPECT_EQ(histogram(options, logits, 4000).size(), n) << p;
  }
}

TEST(Sampler, MinPIsAShareOfTheBest) {
  const std::vector<float> logits{std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
  SamplerOptions options = kOff;
  options.temperature = 5;
  for (auto [p, n] : {std::pair{1.0, 1u}, {0.5, 2u}, {0.25, 3u}, {0.09, 4u}, {0.0, 4u}}) {
    options.min_p = p;
    EXPECT_EQ(histogram(options, logits, 4000).size(), n) << p;
  }
}

TEST(Sampler, MinusInfinityIsNeverDrawn) {
  SamplerOptions options = kOff;
  options.temperature = 1000;
  EXPECT_FALSE(histogram(options, {1, -INFINITY, 2, -INFINITY}, 2000).contains(1));
}

TEST(Sampler, DependsOnSeedStreamAndPositionOnly) {
  const std::vector<float> logits(100, 0.0f);
  const auto draw = [&](uint64_t seed, uint64_t stream, int64_t position) {
    SamplerOptions options = kOff;
    options.seed = seed;
    options.stream = stream;
    return Sampler(options).sample(logits.data(), 100, position);
  };
  int same_seed = 0, same_stream = 0, same_position = 0;
  for (int64_t p = 0; p < 200; ++p) {
    EXPECT_EQ(draw(1, 2, p), draw(1, 2, p));
    same_seed += draw(1, 2, p) == draw(2, 2, p);
    same_stream += draw(1, 2, p) == draw(1, 3, p);
    same_position += draw(1, 2, p) == draw(1, 2, p + 1);
  }
  for (int same : {same_seed, same_stream, same_position}) EXPECT_LT(same, 15);  // 2 expected by chance
}

TEST(Philox, KnownAnswers) {
  // Random123's test vectors for philox4x32-10: counter and key 0, and all ones: first words 6627e8d5 e169c58d and
  // 408f276d 41c83b0e.
  const auto want = [](uint64_t hi, uint64_t lo) { return static_cast<double>((hi << 32 | lo) >> 11) * 0x1p-53; };
  EXPECT_EQ((Philox{0, 0}.uniform(0)), want(0x6627e8d5, 0xe169c58d));
  EXPECT_EQ((Philox{~0ull, ~0ull}.uniform(~0ull)), want(0x408f276d, 0x41c83b0e));
}

TEST(SamplerOptions, ChecksRanges) {
  EXPECT_TRUE(SamplerOptions{}.check());
  for (SamplerOptions bad : {SamplerOptions{.temperature = -1}, SamplerOptions{.temperature = NAN},
                             SamplerOptions{.top_k = -1}, SamplerOptions{.top_p = 1.5}, SamplerOptions{.top_p = -1},
                             SamplerOptions{.min_p = NAN}, SamplerOptions{.min_p = 2}}) {
    const auto status = bad.check();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace stoker::engine
