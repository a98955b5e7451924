// The positions with the largest scores, against sorting.
#include "model/blocks/top_positions.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace stoker::model {
namespace {

std::vector<int32_t> top(const std::vector<float>& scores, int64_t k, int64_t piece) {
  std::vector<std::byte> memory(static_cast<size_t>(TopPositions::bytes(k)));
  TopPositions top(k, memory.data());
  TopPositions::State state;
  const auto n = static_cast<int64_t>(scores.size());
  for (int64_t at = 0; at < n; at += piece) top.add(state, scores.data() + at, std::min(piece, n - at), at);
  std::vector<int32_t> positions(static_cast<size_t>(k), -1);
  positions.resize(static_cast<size_t>(top.finish(state, positions.data())));
  return positions;
}

std::vector<int32_t> sorted_top(const std::vector<float>& scores, int64_t k) {
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  order.resize(std::min(order.size(), static_cast<size_t>(k)));
  std::sort(order.begin(), order.end());
  return order;
}

TEST(TopPositions, AreThoseOfASort) {
  std::mt19937 random(3);
  for (const int n : {1, 7, 8, 9, 63, 64, 200, 3000}) {
    for (const int n_values : {1, 2, 5, 1 << 20}) {  // few: nearly all are ties
      std::vector<float> scores(static_cast<size_t>(n));
      for (float& score : scores)
        score = static_cast<float>(static_cast<int>(random() % static_cast<uint32_t>(n_values)) - 2);
      for (const int64_t k : {1, 3, 8, 64, 1000}) {
        const auto want = sorted_top(scores, k);
        for (const int64_t piece : {1, 17, 64, 4096}) EXPECT_EQ(top(scores, k, piece), want) << n << ' ' << k;
      }
    }
  }
}

TEST(TopPositions, RisingAndFallingScores) {
  std::vector<float> scores(5000);
  std::iota(scores.begin(), scores.end(), -2500.0F);
  for (int turn = 0; turn < 2; ++turn, std::reverse(scores.begin(), scores.end())) {
    EXPECT_EQ(top(scores, 100, 640), sorted_top(scores, 100));
  }
}

TEST(TopPositions, ZerosAreEqualAndNaNDoesNoHarm) {
  EXPECT_EQ(top({-0.0F, 0.0F, -0.0F, 0.0F}, 2, 4), std::vector<int32_t>({0, 1}));
  std::vector<float> scores(100, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(top(scores, 7, 30).size(), 7u);
  scores[50] = std::numeric_limits<float>::infinity();
  scores[60] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(top(scores, 7, 100).size(), 7u);
}

}  // namespace
}  // namespace stoker::model
