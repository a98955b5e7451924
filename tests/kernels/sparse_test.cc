// Attention over selected latents, and the scores of the indexer that selects them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/f16.h"
#include "tests/kernels/attention_data.h"
#include "tests/kernels/numbers.h"

namespace stoker::kernels {
namespace {

constexpr KvType kTypes[] = {KvType::kF16, KvType::kBf16, KvType::kF32, KvType::kQ8_0};

std::vector<std::byte> scratch_of(int64_t bytes) { return std::vector<std::byte>(static_cast<size_t>(bytes) + 64); }
std::byte* aligned(std::vector<std::byte>& memory) {
  return memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
}

/// `n` of the positions below `end`, ascending.
std::vector<int32_t> some_positions(int n, int end, uint32_t seed) {
  std::vector<int32_t> all(static_cast<size_t>(end));
  for (int i = 0; i < end; ++i) all[static_cast<size_t>(i)] = i;
  std::shuffle(all.begin(), all.end(), std::mt19937(seed));
  all.resize(static_cast<size_t>(n));
  std::sort(all.begin(), all.end());
  return all;
}

/// Queries of one token over latents that lie as rows, of which `selected` are seen.
std::vector<float> attend_selected(const Table& table, const KvPages& rows, int v_dim,
                                   const std::vector<Query>& queries, const std::vector<int32_t>& selected) {
  std::vector<float> out(queries.size() * static_cast<size_t>(v_dim));
  std::vector<AttentionQuery> list;
  for (size_t i = 0; i < queries.size(); ++i) {
    list.push_back({.q = queries[i].q.data(),
                    .out = out.data() + i * static_cast<size_t>(v_dim),
                    .begin = 0,
                    .end = static_cast<int64_t>(selected.size()),
                    .sink = nullptr});
  }
  const int k_dim = rows.shape().k_dim;
  auto scratch = scratch_of(attention_scratch_bytes(k_dim, v_dim, true));
  table.attention({.type = rows.shape().type,
                   .k_dim = k_dim,
                   .v_dim = v_dim,
                   .scale = 0.125f,
                   .softcap = 0,
                   .values_in_keys = true,
                   .selected = selected.data(),
                   .queries = list.data(),
                   .n_queries = static_cast<int>(list.size()),
                   .pages = rows.pages(),
                   .k_offset = rows.v_offset(),
                   .v_offset = 0,
                   .scratch = aligned(scratch)});
  return out;
}

// What was selected, one after the other as if nothing else had ever been there, gives the same bits.
TEST(Sparse, SelectedRowsAreAttendedAsIfTheyWereAll) {
  for (KvType type : kTypes) {
    for (auto [k_dim, v_dim] : {std::pair{24, 16}, {40, 32}, {576, 512}}) {
      KvPages rows({type, k_dim, k_dim}, 320, 3);
      ASSERT_TRUE(rows.store(scalar_table(), 0, 300));
      for (auto [n, heads_of_token] : {std::pair{1, 3}, {64, 16}, {65, 18}, {150, k_dim > 500 ? 5 : 64}, {300, 2}}) {
        const auto selected = some_positions(n, 300, static_cast<uint32_t>(n));
        const HeadShape shape{type, k_dim, v_dim, true};
        KvPages dense(shape, 320);
        for (size_t i = 0; i < selected.size(); ++i) {
          std::copy_n(&rows.v[static_cast<size_t>(selected[i] * k_dim)], k_dim,
                      &dense.k[i * static_cast<size_t>(k_dim)]);
        }
        ASSERT_TRUE(dense.store(scalar_table(), 0, n));
        const auto queries = heads(shape, heads_of_token, 0, n, 5);
        const auto want = bits(run_attention(scalar_table(), dense, queries, {}, 1));
        for (const Table* table : attention_tables()) {
          ASSERT_EQ(bits(attend_selected(*table, rows, v_dim, queries, selected)), want)
              << isa_name(table->isa) << ' ' << name_of(shape) << ", " << n << " positions";
        }
      }
    }
  }
}

struct Indexer {
  int n_heads, dim, n_tokens;
  std::vector<float> q, weights;
};

Indexer make_indexer(int n_heads, int dim, int n_tokens) {
  const auto n = static_cast<size_t>(n_heads * n_tokens);
  return {n_heads, dim, n_tokens, normal_values(n * static_cast<size_t>(dim), 11), normal_values(n, 12)};
}

std::vector<float> scores_of(const Table& table, const KvPages& keys, const Indexer& indexer, int64_t begin,
                             int64_t end) {
  const int64_t stride = (end - begin) * 64;
  std::vector<float> scores(static_cast<size_t>(indexer.n_tokens * stride), -1.0f);
  auto scratch = scratch_of(index_scratch_bytes(indexer.dim));
  table.index_scores({.type = keys.shape().type,
                      .dim = indexer.dim,
                      .n_heads = indexer.n_heads,
                      .n_tokens = indexer.n_tokens,
                      .q = indexer.q.data(),
                      .q_stride = indexer.n_heads * indexer.dim,
                      .weights = indexer.weights.data(),
                      .weight_stride = indexer.n_heads,
                      .pages = keys.pages(),
                      .k_offset = keys.k_offset(),
                      .tile_begin = begin,
                      .tile_end = end,
                      .scores = scores.data(),
                      .score_stride = stride,
                      .scratch = aligned(scratch)});
  return scores;
}

TEST(Sparse, IndexScoresSameBits) {
  for (KvType type : kTypes) {
    for (auto [n_heads, dim] : {std::pair{1, 8}, {3, 24}, {32, 128}, {70, 16}}) {
      for (int n_tokens : {1, 3}) {
        KvPages keys({type, dim, 8}, 256);
        ASSERT_TRUE(keys.store(scalar_table(), 0, 256));
        const Indexer indexer = make_indexer(n_heads, dim, n_tokens);
        const auto want = scores_of(scalar_table(), keys, indexer, 0, 4);
        for (const Table* table : attention_tables()) {
          ASSERT_EQ(bits(scores_of(*table, keys, indexer, 0, 4)), bits(want)) << isa_name(table->isa);
        }
        // A tile by itself.
        const auto third = scores_of(*attention_tables().back(), keys, indexer, 2, 3);
        for (size_t token = 0; token < static_cast<size_t>(n_tokens); ++token) {
          EXPECT_TRUE(std::equal(&third[token * 64], &third[token * 64] + 64, &want[token * 256 + 128]));
        }
      }
    }
  }
}

TEST(Sparse, IndexScoresAreTheWeightedSumOfWhatIsAboveZero) {
  for (KvType type : kTypes) {
    KvPages keys({type, 32, 8}, 64);
    ASSERT_TRUE(keys.store(scalar_table(), 0, 64));
    const Indexer indexer = make_indexer(5, 32, 1);
    const auto scores = scores_of(scalar_table(), keys, indexer, 0, 1);
    for (size_t p = 0; p < 64; ++p) {
      double want = 0;
      for (size_t head = 0; head < 5; ++head) {
        double dot = 0;
        for (int d = 0; d < 32; ++d) {
          dot += static_cast<double>(indexer.q[head * 32 + static_cast<size_t>(d)]) *
                 static_cast<double>(as_stored(type, &keys.k[p * 32], 32, d));
        }
        want += static_cast<double>(indexer.weights[head]) * std::max(dot, 0.0);
      }
      EXPECT_NEAR(static_cast<double>(scores[p]), want, 1e-4) << p;
    }
  }
}

}  // namespace
}  // namespace stoker::kernels
