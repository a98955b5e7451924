// Attention against its definition, stated again: in double, and in the order of docs/kernels.md.
#include <gtest/gtest.h>

#include "base/math.h"
#include "tests/kernels/attention_data.h"
#include "tests/kernels/numbers.h"

namespace stoker::kernels {
namespace {

constexpr KvType kTypes[] = {KvType::kF16, KvType::kBf16, KvType::kF32, KvType::kQ8_0};

std::vector<double> softmax_attention(const KvPages& kv, const Query& query, const Options& options) {
  const HeadShape& shape = kv.shape();
  std::vector<double> weights, out(static_cast<size_t>(shape.v_dim), 0.0);
  double top = query.has_sink ? query.sink : -1e300, sum = 0;
  for (int64_t p = query.begin; p < query.end; ++p) {
    double dot = 0;
    for (int d = 0; d < shape.k_dim; ++d) {
      dot += static_cast<double>(query.q[static_cast<size_t>(d)]) *
             as_stored(shape.type, kv.k.data() + p * shape.k_dim, shape.k_dim, d);
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
                                     as_stored(shape.type, kv.v.data() + p * shape.v_dim, shape.v_dim, d);
    }
  }
  return out;
}

TEST(Attention, CloseToDouble) {
  for (KvType type : kTypes) {
    // f16, f32, q8_0: rounding of f32 sums only. bf16 also rounds q and the weights, by up to 2^-9 each.
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

// ---- The order of tiles, in plain f32 code; not bf16.

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
                   as_stored(shape.type, kv.k.data() + p * shape.k_dim, shape.k_dim, d), s);
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
      part.values[d] = std::fma(
          w, as_stored(shape.type, kv.v.data() + p * shape.v_dim, shape.v_dim, static_cast<int>(d)), part.values[d]);
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
  for (KvType type : {KvType::kF16, KvType::kF32, KvType::kQ8_0}) {
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
    for (const Table* table : attention_tables()) {
      const std::vector<uint32_t> out = bits(run_attention(*table, kv, {query}, {}, 1));
      EXPECT_EQ(out, right) << isa_name(table->isa);
      EXPECT_NE(out, wrong) << isa_name(table->isa);
    }
  }
}

}  // namespace
}  // namespace stoker::kernels
