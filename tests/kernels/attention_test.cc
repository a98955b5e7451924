#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/attention_data.h"
#include "tests/kernels/numbers.h"

namespace stoker::kernels {
namespace {

constexpr KvType kTypes[] = {KvType::kF16, KvType::kBf16, KvType::kF32, KvType::kQ8_0};
/// Heads of these dimensions in each type of cache, with values of their own and in the keys.
std::vector<HeadShape> every_type(int k_dim, int v_dim) {
  std::vector<HeadShape> shapes;
  for (KvType type : kTypes) {
    shapes.push_back({type, k_dim, v_dim});
    shapes.push_back({type, std::max(k_dim, v_dim), v_dim, true});
  }
  return shapes;
}
constexpr int kGroups[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 25, 37, 64};

/// All tables and groupings against the scalar table with one query at a time. The scalar kernels themselves take the
/// queries of a call one after the other, whatever their number, and are slow: for them the last grouping speaks for
/// all.
void expect_scalar_bits(const KvPages& kv, const std::vector<Query>& queries, const Options& options,
                        std::span<const int> groups) {
  const std::vector<uint32_t> expected = bits(run_attention(scalar_table(), kv, queries, options, 1));
  for (const Table* table : attention_tables()) {
    for (int group : table->isa == Isa::kScalar ? groups.last(1) : groups) {
      ASSERT_EQ(bits(run_attention(*table, kv, queries, options, group)), expected)
          << isa_name(table->isa) << ' ' << name_of(kv.shape()) << " in calls of " << group << ", positions "
          << queries.front().begin << " to " << queries.back().end;
    }
  }
}

TEST(Attention, DecodeSameBits) {
  const int groups[] = {1, 3, 8};
  for (KvType type : kTypes) {
    for (int dim : {16, 64, 80, 128, 256}) {
      const HeadShape shape{type, dim, dim};
      KvPages kv(shape, 256);
      ASSERT_TRUE(kv.store(scalar_table(), 0, 200));
      for (int64_t end : {1, 63, 64, 65, 127, 128, 129, 200}) {
        kv.poison(end, 256);
        expect_scalar_bits(kv, heads(shape, 8, 0, end, 7, true), {.softcap = end % 2 ? 0.0f : 20.0f}, groups);
        kv.store(scalar_table(), end, 200);
      }
    }
  }
}

TEST(Attention, AllHeadSizesSameBits) {
  const int groups[] = {2, 24};
  for (KvType type : kTypes) {
    for (int k_dim : {8, 24, 32, 40, 48, 72, 96, 104, 192, 576}) {
      const HeadShape shape{type, k_dim, k_dim == 192 ? 128 : k_dim == 576 ? 512 : k_dim};
      KvPages kv(shape, 140);
      ASSERT_TRUE(kv.store(scalar_table(), 0, 140));
      expect_scalar_bits(kv, prefill(shape, 128, 12, 0, true), {}, groups);
    }
  }
}

TEST(Attention, PrefillSameBitsInAllGroupings) {
  for (KvType type : kTypes) {
    const HeadShape shape{type, 64, 80};
    KvPages kv(shape, 192);
    ASSERT_TRUE(kv.store(scalar_table(), 0, 162));
    expect_scalar_bits(kv, prefill(shape, 130, 32, 0, true), {.softcap = 15.0f}, kGroups);
    expect_scalar_bits(kv, prefill(shape, 0, 32, 0, false), {}, kGroups);
  }
}

TEST(Attention, WindowsThatEndInsideTiles) {
  const int groups[] = {1, 5, 8, 64};
  for (KvType type : kTypes) {
    const HeadShape shape{type, 32, 40};
    for (int64_t window : {1, 10, 64, 100}) {
      KvPages kv(shape, 320);
      ASSERT_TRUE(kv.store(scalar_table(), 0, 232));
      kv.poison(232, 320);
      kv.poison(0, 200 - window + 1);  // Recycled: nobody sees it any more.
      expect_scalar_bits(kv, prefill(shape, 200, 32, window, false), {}, groups);
    }
  }
}

TEST(Attention, QueriesThatSeeUnrelatedPlaces) {
  const int groups[] = {1, 4, 9, 16};
  for (const HeadShape& shape : every_type(24, 48)) {
    KvPages kv(shape, 640);
    ASSERT_TRUE(kv.store(scalar_table(), 0, 640));
    std::vector<Query> queries;
    for (auto [begin, end] :
         {std::pair{0, 5}, {20, 30}, {50, 64}, {3, 3}, {600, 640}, {63, 65}, {500, 400}, {64, 128}}) {
      for (const Query& query : heads(shape, 2, begin, end, static_cast<uint32_t>(begin), begin == 3))
        queries.push_back(query);
    }
    for (auto [begin, end] : {std::pair{5, 20}, {30, 50}, {65, 70}, {128, 600}}) kv.poison(begin, end);
    expect_scalar_bits(kv, queries, {}, groups);
  }
}

// The distance is from positions on both sides, in this tile and in others.
TEST(Attention, DistancesSameBits) {
  const int groups[] = {1, 3, 16};
  for (const HeadShape& shape : every_type(32, 32)) {
    KvPages kv(shape, 200);
    ASSERT_TRUE(kv.store(scalar_table(), 0, 200));
    std::vector<Query> queries = heads(shape, 16, 0, 200, 5);
    for (size_t i = 0; i < queries.size(); ++i) {
      queries[i].slope = i % 4 == 3 ? 0.0f : 0.5f / static_cast<float>(i + 1);
      queries[i].position = static_cast<int64_t>(i * 13);
    }
    expect_scalar_bits(kv, queries, {}, groups);
    expect_scalar_bits(kv, queries, {.softcap = 9.0f}, groups);
    const auto expected = bits(run_attention(scalar_table(), kv, queries, {}, 1));
    for (const Table* table : attention_tables())
      ASSERT_EQ(bits(run_in_parts(*table, kv, queries, {}, 1, 1)), expected) << isa_name(table->isa) << name_of(shape);
  }
}

// So steep that a query takes the value of its own position.
TEST(Attention, ASteepSlopeLeavesOnlyTheQuerysOwnPosition) {
  const HeadShape shape{KvType::kF32, 16, 16};
  KvPages kv(shape, 128);
  ASSERT_TRUE(kv.store(scalar_table(), 0, 128));
  std::vector<Query> queries = heads(shape, 1, 0, 128, 5);
  queries[0].slope = 1000;
  for (const int64_t position : {0, 63, 64, 100}) {
    queries[0].position = position;
    const auto out = run_attention(scalar_table(), kv, queries, {}, 1);
    for (size_t d = 0; d < 16; ++d) EXPECT_FLOAT_EQ(out[d], kv.v[static_cast<size_t>(position) * 16 + d]) << position;
  }
}

TEST(Attention, PartsMergedLaterGiveTheSameBits) {
  for (KvType type : kTypes) {
    for (const HeadShape& shape : {HeadShape{type, 32, 40}, {type, 56, 48, true}}) {
      KvPages kv(shape, 448);
      ASSERT_TRUE(kv.store(scalar_table(), 0, 440));
      kv.poison(440, 448);
      for (int64_t window : {0, 200}) {
        for (int n : {1, 7}) {
          const std::vector<Query> queries = prefill(shape, 440 - n, n, window, true);
          const Options options{.softcap = n == 7 ? 15.0f : 0.0f};
          const std::vector<uint32_t> expected = bits(run_attention(scalar_table(), kv, queries, options, 1));
          const int64_t tiles = 7 - queries.front().begin / kTilePositions;
          for (const Table* table : attention_tables()) {
            for (auto [alone, goes_on] : {std::pair{1, 0}, {1, 1}, {2, 1}, {3, 0}, {1, static_cast<int>(tiles) - 1}}) {
              ASSERT_EQ(bits(run_in_parts(*table, kv, queries, options, alone, goes_on)), expected)
                  << isa_name(table->isa) << ' ' << name_of(shape) << ", " << alone << " + " << goes_on << " of "
                  << tiles;
            }
          }
        }
      }
    }
  }
}

TEST(Attention, ValuesInKeysSameBits) {
  for (KvType type : kTypes) {
    for (auto [k_dim, v_dim] : {std::pair{24, 16}, {56, 48}, {576, 512}}) {
      const HeadShape shape{type, k_dim, v_dim, true};
      KvPages kv(shape, 256);
      ASSERT_TRUE(kv.store(scalar_table(), 0, 200));
      kv.poison(200, 256);
      const bool wide = k_dim > 500;
      const int few[] = {16, 64}, all[] = {1, 3, 8, 16, 17, 33, 48, 64};
      const std::span<const int> groups = wide ? std::span<const int>(few) : std::span<const int>(all);
      expect_scalar_bits(kv, heads(shape, wide ? 16 : 40, 0, 200, 7, true), {.softcap = 20.0f}, groups);
      expect_scalar_bits(kv, prefill(shape, 125, wide ? 8 : 40, 0, true), {}, groups);
      expect_scalar_bits(kv, prefill(shape, 125, wide ? 8 : 40, 90, false), {}, groups);
    }
  }
}

TEST(Attention, ValuesInKeysAreThoseOfATwin) {
  for (KvType type : kTypes) {
    const HeadShape shape{type, 40, 32, true}, twin{type, 40, 32, false};
    KvPages kv(shape, 200), both(twin, 200);
    for (size_t i = 0; i < 200; ++i) std::copy_n(&kv.k[i * 40], 32, &both.v[i * 32]);
    both.k = kv.k;
    ASSERT_TRUE(kv.store(scalar_table(), 0, 200));
    ASSERT_TRUE(both.store(scalar_table(), 0, 200));
    const auto queries = prefill(shape, 150, 25, 0, true);
    EXPECT_EQ(bits(run_attention(scalar_table(), kv, queries, {}, 50)),
              bits(run_attention(scalar_table(), both, queries, {}, 50)))
        << name_of(shape);
  }
}

TEST(Attention, NothingSeenGivesZeros) {
  const HeadShape shape{KvType::kF16, 64, 64};
  KvPages kv(shape, 64);
  std::vector<Query> queries = heads(shape, 12, 9, 9, 1);
  queries[5].has_sink = true;
  for (const Table* table : attention_tables()) {
    for (int group : {1, 12}) {
      const std::vector<float> out = run_attention(*table, kv, queries, {}, group);
      EXPECT_EQ(bits(out), std::vector<uint32_t>(out.size(), 0u)) << isa_name(table->isa);
    }
  }
}

TEST(Attention, NaNInAQueryStaysThereAndShows) {
  for (const HeadShape& shape : every_type(64, 64)) {
    KvPages kv(shape, 100);
    kv.store(scalar_table(), 0, 100);
    const std::vector<Query> good = heads(shape, 12, 0, 100, 4);
    std::vector<Query> queries = good;
    queries[3].q[17] = std::numeric_limits<float>::quiet_NaN();
    for (const Table* table : attention_tables()) {
      const std::vector<float> want = run_attention(*table, kv, good, {}, 12);
      const std::vector<float> out = run_attention(*table, kv, queries, {.softcap = 0.0f}, 12);
      for (size_t i = 0; i < out.size(); ++i) {
        const bool failed = i / 64 == 3;
        EXPECT_EQ(std::isnan(out[i]), failed) << isa_name(table->isa) << ' ' << i;
        if (!failed) {
          EXPECT_EQ(out[i], want[i]);
        }
      }
    }
  }
}

TEST(Attention, TinyWeightsAndLargeScores) {
  const int groups[] = {1, 8, 16};
  for (KvType type : kTypes) {
    for (float scale : {1e-30f, 60.0f}) {
      const HeadShape shape{type, 64, 64};
      KvPages kv(shape, 130);
      for (float& x : kv.k) x *= scale;
      for (float& x : kv.v) x *= scale;
      EXPECT_TRUE(kv.store(scalar_table(), 0, 130));
      expect_scalar_bits(kv, heads(shape, 16, 0, 130, 5, true), {.scale = 1.0f}, groups);
    }
  }
}

}  // namespace
}  // namespace stoker::kernels
