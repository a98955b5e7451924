#include <gtest/gtest.h>

#include "base/f16.h"
#include "base/math.h"
#include "tests/kernels/attention_data.h"
#include "tests/kernels/numbers.h"

namespace stoker::kernels {
namespace {

constexpr KvType kTypes[] = {KvType::kF16, KvType::kBf16, KvType::kF32};
constexpr int kGroups[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 25, 37, 64};

/// `n` heads of the token at `end - 1`; every third has a sink.
std::vector<Query> heads(const HeadShape& shape, int n, int64_t begin, int64_t end, uint32_t seed, bool sinks = false) {
  std::vector<Query> queries(static_cast<size_t>(n));
  for (Query& query : queries) {
    query.q = normal_values(static_cast<size_t>(shape.k_dim), seed++);
    query.begin = begin;
    query.end = end;
    query.has_sink = sinks && seed % 3 == 0;
    query.sink = static_cast<float>(seed % 7) - 3.0f;
  }
  return queries;
}

/// Causal prefill: `n` tokens from `first` on, two heads each, seeing at most `window` positions (0: all).
std::vector<Query> prefill(const HeadShape& shape, int64_t first, int n, int64_t window, bool sinks) {
  std::vector<Query> queries;
  for (int i = 0; i < n; ++i) {
    const int64_t end = first + i + 1;
    const int64_t begin = window > 0 && end > window ? end - window : 0;
    for (Query& query : heads(shape, 2, begin, end, static_cast<uint32_t>(2 * i + 10), sinks)) queries.push_back(query);
  }
  return queries;
}

/// All tables and groupings against the scalar table with one query at a time.
void expect_scalar_bits(const KvPages& kv, const std::vector<Query>& queries, const Options& options,
                        std::span<const int> groups) {
  const std::vector<uint32_t> expected = bits(run_attention(scalar_table(), kv, queries, options, 1));
  for (const Table* table : runnable_tables()) {
    for (int group : groups) {
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
  for (KvType type : kTypes) {
    const HeadShape shape{type, 24, 48};
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

TEST(Attention, NothingSeenGivesZeros) {
  const HeadShape shape{KvType::kF16, 64, 64};
  KvPages kv(shape, 64);
  std::vector<Query> queries = heads(shape, 12, 9, 9, 1);
  queries[5].has_sink = true;
  for (const Table* table : runnable_tables()) {
    for (int group : {1, 12}) {
      const std::vector<float> out = run_attention(*table, kv, queries, {}, group);
      EXPECT_EQ(bits(out), std::vector<uint32_t>(out.size(), 0u)) << isa_name(table->isa);
    }
  }
}

TEST(Attention, NaNInAQueryStaysThereAndShows) {
  for (KvType type : kTypes) {
    const HeadShape shape{type, 64, 64};
    KvPages kv(shape, 100);
    kv.store(scalar_table(), 0, 100);
    const std::vector<Query> good = heads(shape, 12, 0, 100, 4);
    std::vector<Query> queries = good;
    queries[3].q[17] = std::numeric_limits<float>::quiet_NaN();
    for (const Table* table : runnable_tables()) {
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

// ---- Against the definition, stated again in double.

float as_stored(KvType type, float x) {
  if (type == KvType::kF32) return x;
  return type == KvType::kF16 ? f16_to_f32(f32_to_f16(x)) : bf16_to_f32(f32_to_bf16(x));
}

std::vector<double> softmax_attention(const KvPages& kv, const Query& query, const Options& options) {
  const HeadShape& shape = kv.shape();
  std::vector<double> weights, out(static_cast<size_t>(shape.v_dim), 0.0);
  double top = query.has_sink ? query.sink : -1e300, sum = 0;
  for (int64_t p = query.begin; p < query.end; ++p) {
    double dot = 0;
    for (int d = 0; d < shape.k_dim; ++d) {
      dot += static_cast<double>(query.q[static_cast<size_t>(d)]) *
             as_stored(shape.type, kv.k[static_cast<size_t>(p * shape.k_dim + d)]);
    }
    dot *= options.scale;
    if (options.softcap > 0) dot = options.softcap * std::tanh(dot / options.softcap);
    weights.push_back(dot);
    top = std::max(top, dot);
  }
  for (double& w : weights) sum += w = std::exp(w - top);
  if (query.has_sink) sum += std::exp(query.sink - top);
  for (int64_t p = query.begin; p < query.end; ++p) {
    for (int d = 0; d < shape.v_dim; ++d) {
      out[static_cast<size_t>(d)] += weights[static_cast<size_t>(p - query.begin)] / sum *
                                     as_stored(shape.type, kv.v[static_cast<size_t>(p * shape.v_dim + d)]);
    }
  }
  return out;
}

TEST(Attention, CloseToDouble) {
  for (KvType type : kTypes) {
    // f16 and f32: rounding of f32 sums only. bf16 also rounds q and the weights, by up to 2^-9 each.
    const double tolerance = type == KvType::kBf16 ? 2e-2 : 3e-6;
    for (int dim : {16, 80, 128}) {
      const HeadShape shape{type, dim, dim};
      KvPages kv(shape, 300);
      kv.store(scalar_table(), 0, 300);
      const Options options{.scale = 1 / std::sqrt(static_cast<float>(dim)), .softcap = dim == 80 ? 2.0f : 0.0f};
      for (const Query& query : prefill(shape, 280, 8, dim == 16 ? 130 : 0, true)) {
        const std::vector<float> out = run_attention(scalar_table(), kv, {query}, options, 1);
        const std::vector<double> want = softmax_attention(kv, query, options);
        for (size_t d = 0; d < want.size(); ++d) EXPECT_NEAR(out[d], want[d], tolerance) << name_of(shape);
      }
    }
  }
}

// ---- The order of tiles, in plain f32 code; f16 and f32 only.

struct Part {
  float max, sum;
  std::vector<float> values;
};

Part tile_part(const KvPages& kv, const Query& query, int64_t tile, float scale) {
  const HeadShape& shape = kv.shape();
  const int64_t begin = std::max(query.begin, tile * 64), end = std::min(query.end, tile * 64 + 64);
  Part part{-1e30f, 0, std::vector<float>(static_cast<size_t>(shape.v_dim), 0.0f)};
  std::vector<float> weights;
  for (int64_t p = begin; p < end; ++p) {
    float s = 0;
    for (int d = 0; d < shape.k_dim; ++d) {
      s = std::fma(query.q[static_cast<size_t>(d)],
                   as_stored(shape.type, kv.k[static_cast<size_t>(p * shape.k_dim + d)]), s);
    }
    weights.push_back(s * scale);
    part.max = std::max(part.max, weights.back());
  }
  float lanes[16] = {};
  for (int64_t p = begin; p < end; ++p) {
    float& w = weights[static_cast<size_t>(p - begin)];
    w = math::exp_f32(w - part.max);
    lanes[p % 16] += w;
    for (size_t d = 0; d < part.values.size(); ++d) {
      part.values[d] =
          std::fma(w, as_stored(shape.type, kv.v[static_cast<size_t>(p) * part.values.size() + d]), part.values[d]);
    }
  }
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  part.sum = lanes[0];
  return part;
}

std::vector<float> merged(const std::vector<Part>& parts) {
  Part total = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) {
    const float top = std::max(total.max, parts[i].max);
    const float a = math::exp_f32(total.max - top), b = math::exp_f32(parts[i].max - top);
    total.max = top;
    total.sum = std::fma(total.sum, a, parts[i].sum * b);
    for (size_t d = 0; d < total.values.size(); ++d) {
      total.values[d] = std::fma(total.values[d], a, parts[i].values[d] * b);
    }
  }
  for (float& value : total.values) value = std::fma(value, 1.0f / total.sum, 0.0f);
  return total.values;
}

TEST(Attention, TilesAreMergedInAscendingOrder) {
  for (KvType type : {KvType::kF16, KvType::kF32}) {
    const HeadShape shape{type, 64, 64};
    KvPages kv(shape, 250);
    kv.store(scalar_table(), 0, 250);
    const Query query = heads(shape, 1, 10, 250, 3).front();
    std::vector<Part> parts;
    for (int64_t tile = 0; tile < 4; ++tile) parts.push_back(tile_part(kv, query, tile, 0.125f));
    const std::vector<uint32_t> right = bits(merged(parts));
    std::swap(parts[1], parts[2]);
    const std::vector<uint32_t> wrong = bits(merged(parts));
    EXPECT_NE(right, wrong) << "a planted fault must show, or these tests prove nothing";
    for (const Table* table : runnable_tables()) {
      const std::vector<uint32_t> out = bits(run_attention(*table, kv, {query}, {}, 1));
      EXPECT_EQ(out, right) << isa_name(table->isa);
      EXPECT_NE(out, wrong) << isa_name(table->isa);
    }
  }
}

}  // namespace
}  // namespace stoker::kernels
