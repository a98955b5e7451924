#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stoker::model {
namespace {

ModelConfig config_of(int64_t dims, float base) {
  ModelConfig config;
  config.rope_dims = dims;
  config.rope_base = config.rope_base_swa = base;
  config.rope_original_context = config.context_length = 4096;
  return config;
}

RopeTable table(const ModelConfig& config, const Weights& weights = {}, bool sliding = false, int64_t context = 4096) {
  auto made = make_rope(config, weights, sliding, context);
  if (!made) ADD_FAILURE() << made.error().message;
  return std::move(*made);
}

TEST(Rope, PlainFrequenciesAndAngles) {
  const RopeTable t = table(config_of(64, 10000));
  ASSERT_EQ(t.frequency.size(), 32u);
  for (size_t i = 0; i < 32; ++i)
    EXPECT_NEAR(t.frequency[i], std::pow(10000.0, -2.0 * static_cast<double>(i) / 64), 1e-15);
  float cos[32], sin[32];
  t.at(100000, cos, sin);
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_NEAR(cos[i], std::cos(100000 * t.frequency[i]), 1e-7);
    EXPECT_NEAR(sin[i], std::sin(100000 * t.frequency[i]), 1e-7);
  }
}

TEST(Rope, Linear) {
  ModelConfig config = config_of(64, 10000);
  config.rope_scaling = RopeScaling::kLinear;
  config.rope_factor = 8;
  EXPECT_DOUBLE_EQ(table(config).frequency[0], 0.125);
}

TEST(Rope, YarnMatchesPublishedValues) {
  // Angular frequencies of gpt-oss with rounded bounds, computed with an independent implementation.
  ModelConfig config = config_of(64, 150000);
  config.rope_scaling = RopeScaling::kYarn;
  config.rope_factor = 32;
  const RopeTable t = table(config);
  for (auto [i, want] :
       {std::pair{0, 1.0}, {9, 0.0316207523}, {12, 0.00701571391}, {16, 0.000580947502}, {17, 0.000227947796}}) {
    EXPECT_NEAR(t.frequency[static_cast<size_t>(i)] / want, 1, 1e-8) << i;
  }
  EXPECT_NEAR(t.magnitude, 1.3465736, 1e-7);
  config.yarn_truncate = 0;
  const RopeTable real = table(config);
  for (auto [i, want] :
       {std::pair{0, 1.0}, {9, 0.0317056962}, {12, 0.00679495949}, {16, 0.000456483919}, {17, 0.000129318701}}) {
    EXPECT_NEAR(real.frequency[static_cast<size_t>(i)] / want, 1, 1e-8) << i;
  }
}

TEST(Rope, FactorTensorsDivide) {
  ModelConfig config = config_of(16, 10000);
  float factors[16] = {1, 1, 2, 2, 4, 4, 8, 8};
  Weights weights;
  weights.rope_factors = {.name = "rope_freqs.weight", .n = 8, .data = factors};
  const RopeTable plain = table(config), divided = table(config, weights);
  for (size_t i = 0; i < 8; ++i)
    EXPECT_DOUBLE_EQ(divided.frequency[i] * static_cast<double>(factors[i]), plain.frequency[i]);
  for (float bad : {0.0f, -1.0f, NAN, INFINITY}) {
    factors[3] = bad;
    const auto refused = make_rope(config, weights, false, 4096);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("rope_freqs.weight: entry 3"), std::string::npos);
  }
}

TEST(Rope, LongRopeGoesByTheContext) {
  ModelConfig config = config_of(16, 10000);
  config.rope_scaling = RopeScaling::kLongRope;
  config.rope_attn_factor = 1.19f;
  float long_factors[16] = {4, 4, 4, 4, 4, 4, 4, 4}, short_factors[16] = {2, 2, 2, 2, 2, 2, 2, 2};
  Weights weights;
  weights.rope_long = {.name = "rope_factors_long.weight", .n = 8, .data = long_factors};
  EXPECT_DOUBLE_EQ(table(config, weights, false, 4097).frequency[0], 0.25);
  EXPECT_EQ(make_rope(config, weights, false, 4096).error().code, ErrorCode::kCorrupt);  // no short ones
  weights.rope_short = {.name = "rope_factors_short.weight", .n = 8, .data = short_factors};
  EXPECT_DOUBLE_EQ(table(config, weights, false, 4096).frequency[0], 0.5);
  EXPECT_NEAR(table(config, weights, false, 4096).magnitude, 1.19, 1e-6);
}

TEST(Rope, SlidingLayersKeepToThemselves) {
  ModelConfig config = config_of(32, 1000000);
  config.rope_base_swa = 10000;
  config.rope_swa_plain = true;
  config.rope_scaling = RopeScaling::kLinear;
  config.rope_factor = 8;
  const RopeTable full = table(config), sliding = table(config, {}, true);
  EXPECT_DOUBLE_EQ(full.frequency[0], 0.125);
  EXPECT_DOUBLE_EQ(sliding.frequency[0], 1);
  EXPECT_NEAR(sliding.frequency[1], std::pow(10000.0, -2.0 / 32), 1e-15);
}

}  // namespace
}  // namespace stoker::model
