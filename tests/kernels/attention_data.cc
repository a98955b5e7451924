#include "tests/kernels/attention_data.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>

#include "base/f16.h"
#include "kernels/kv_layout.h"
#include "tests/kernels/numbers.h"

namespace stoker::kernels {
namespace {

constexpr size_t kLine = 64;

/// 64-byte aligned and filled with NaN of every type.
class Scratch {
 public:
  explicit Scratch(int64_t bytes) : data_(static_cast<std::byte*>(std::aligned_alloc(kLine, padded(bytes)))) {
    std::memset(data_.get(), 0xff, padded(bytes));
  }
  std::byte* data() { return data_.get(); }

 private:
  static size_t padded(int64_t bytes) { return (static_cast<size_t>(bytes) + kLine - 1) / kLine * kLine; }
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
};

void store_rows(const Table& table, const HeadShape& shape, bool is_k, std::byte* tile, int position, int n,
                const float* x, bool& finite) {
  const int dim = is_k ? shape.k_dim : shape.v_dim;
  const KvStoreArgs args{
      .type = shape.type, .dim = dim, .tile = tile, .position = position, .n = n, .x = x, .stride = dim};
  finite &= is_k ? table.store_k(args) : table.store_v(args);
}

}  // namespace

std::vector<const Table*> attention_tables() {
  std::vector<const Table*> out;
  for (const Table* table : runnable_tables()) {
    const auto same = [&](const Table* other) { return other->attention == table->attention; };
    if (std::none_of(out.begin(), out.end(), same)) out.push_back(table);
  }
  return out;
}

std::string name_of(const HeadShape& shape) {
  const char* names[] = {"f16", "bf16", "f32", "q8_0"};
  return std::string(names[static_cast<int>(shape.type)]) + " k " + std::to_string(shape.k_dim) + " v " +
         std::to_string(shape.v_dim);
}

float as_stored(KvType type, const float* head, int dim, int d) {
  if (type == KvType::kF32) return head[d];
  if (type == KvType::kF16) return f16_to_f32(f32_to_f16(head[d]));
  if (type == KvType::kBf16) return bf16_to_f32(f32_to_bf16(head[d]));
  float top = 0;
  for (int i = d / 32 * 32; i < std::min(d / 32 * 32 + 32, dim); ++i) top = std::max(top, std::fabs(head[i]));
  const float scale = f16_to_f32(f32_to_f16(top / 127));
  if (scale == 0) return 0;
  return scale * std::clamp(std::nearbyint(head[d] * (1 / scale)), -127.0f, 127.0f);
}

KvPages::KvPages(HeadShape shape, int64_t capacity, uint32_t seed)
    : k(normal_values(static_cast<size_t>(capacity * shape.k_dim), seed)),
      v(normal_values(static_cast<size_t>(capacity * shape.v_dim), seed + 1)),
      shape_(shape) {
  const auto n_tiles = static_cast<size_t>((capacity + kTilePositions - 1) / kTilePositions);
  const auto page_bytes = static_cast<size_t>(v_offset() + kv_tile_bytes(shape.type, shape.v_dim));
  storage_.assign(n_tiles * page_bytes + 2 * kLine, std::byte{0xff});
  const size_t start = kLine - reinterpret_cast<uintptr_t>(storage_.data()) % kLine;
  for (size_t tile = 0; tile < n_tiles; ++tile) offsets_.push_back(start + tile * page_bytes);
  std::shuffle(offsets_.begin(), offsets_.end(), std::mt19937(seed));
  for (size_t offset : offsets_) pages_.push_back(storage_.data() + offset);
}

int64_t KvPages::v_offset() const { return kKOffset + kv_tile_bytes(shape_.type, shape_.k_dim); }

bool KvPages::store(const Table& table, int64_t begin, int64_t end, int64_t run) {
  bool finite = true;
  for (int64_t at = begin; at < end;) {
    const int64_t tile = at / kTilePositions, position = at % kTilePositions;
    const auto n = static_cast<int>(std::min({run, end - at, kTilePositions - position}));
    store_rows(table, shape_, true, k_tile(tile), static_cast<int>(position), n, k.data() + at * shape_.k_dim, finite);
    store_rows(table, shape_, false, v_tile(tile), static_cast<int>(position), n, v.data() + at * shape_.v_dim, finite);
    at += n;
  }
  return finite;
}

void KvPages::poison(int64_t begin, int64_t end) {
  const float poisons[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 60000.0f};
  std::vector<float> kept_k = k, kept_v = v;
  for (size_t i = 0; i < k.size(); ++i) k[i] = poisons[i % 3];
  for (size_t i = 0; i < v.size(); ++i) v[i] = poisons[(i + 1) % 3];
  store(scalar_table(), begin, end);
  k = kept_k;
  v = kept_v;
}

std::vector<Query> heads(const HeadShape& shape, int n, int64_t begin, int64_t end, uint32_t seed, bool sinks) {
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

std::vector<Query> prefill(const HeadShape& shape, int64_t first, int n, int64_t window, bool sinks) {
  std::vector<Query> queries;
  for (int i = 0; i < n; ++i) {
    const int64_t end = first + i + 1;
    const int64_t begin = window > 0 && end > window ? end - window : 0;
    for (Query& query : heads(shape, 2, begin, end, static_cast<uint32_t>(2 * i + 10), sinks)) queries.push_back(query);
  }
  return queries;
}

std::vector<float> run_attention(const Table& table, const KvPages& kv, const std::vector<Query>& queries,
                                 const Options& options, int group) {
  const HeadShape& shape = kv.shape();
  const auto v_dim = static_cast<size_t>(shape.v_dim);
  std::vector<float> out(queries.size() * v_dim + 1, -77.0f);  // One more: a fence.
  std::vector<AttentionQuery> list;
  for (size_t i = 0; i < queries.size(); ++i) {
    const Query& query = queries[i];
    list.push_back({.q = query.q.data(),
                    .out = out.data() + i * v_dim,
                    .begin = query.begin,
                    .end = query.end,
                    .sink = query.has_sink ? &query.sink : nullptr,
                    .slope = query.slope,
                    .position = query.position});
  }
  Scratch scratch(attention_scratch_bytes(shape.k_dim, shape.v_dim, shape.values_in_keys));
  for (size_t first = 0; first < list.size(); first += static_cast<size_t>(group)) {
    const size_t n = std::min(static_cast<size_t>(group), list.size() - first);
    table.attention({.type = shape.type,
                     .k_dim = shape.k_dim,
                     .v_dim = shape.v_dim,
                     .scale = options.scale,
                     .softcap = options.softcap,
                     .values_in_keys = shape.values_in_keys,
                     .queries = list.data() + first,
                     .n_queries = static_cast<int>(n),
                     .pages = kv.pages(),
                     .k_offset = kv.k_offset(),
                     .v_offset = kv.v_offset(),
                     .scratch = scratch.data()});
  }
  if (out.back() != -77.0f) std::abort();
  out.pop_back();
  return out;
}

std::vector<float> run_in_parts(const Table& table, const KvPages& kv, const std::vector<Query>& queries,
                                const Options& options, int64_t alone, int64_t goes_on) {
  const HeadShape& shape = kv.shape();
  const auto v_dim = static_cast<size_t>(shape.v_dim);
  const int n = static_cast<int>(queries.size());
  std::vector<float> out(queries.size() * v_dim, -77.0f);
  std::vector<AttentionQuery> list;
  for (size_t i = 0; i < queries.size(); ++i) {
    const Query& query = queries[i];
    list.push_back({query.q.data(), out.data() + i * v_dim, query.begin, query.end,
                    query.has_sink ? &query.sink : nullptr, query.slope, query.position});
  }
  const int64_t first = queries.front().begin / kTilePositions;
  const int64_t end = (queries.back().end + kTilePositions - 1) / kTilePositions;
  const AttentionPart part(n, shape.v_dim);
  const auto bytes = [&](int64_t n_parts) { return n_parts * part.total * static_cast<int64_t>(sizeof(float)); };
  Scratch scratch(attention_scratch_bytes(shape.k_dim, shape.v_dim, shape.values_in_keys)), one(bytes(1)),
      two(bytes(1)), rest(bytes(end));
  const auto floats_of = [](Scratch& memory) { return reinterpret_cast<float*>(memory.data()); };
  AttentionArgs args{.type = shape.type,
                     .k_dim = shape.k_dim,
                     .v_dim = shape.v_dim,
                     .scale = options.scale,
                     .softcap = options.softcap,
                     .values_in_keys = shape.values_in_keys,
                     .queries = list.data(),
                     .n_queries = n,
                     .pages = kv.pages(),
                     .k_offset = kv.k_offset(),
                     .v_offset = kv.v_offset(),
                     .scratch = scratch.data(),
                     .parts = floats_of(one),
                     .tile_begin = first,
                     .tile_end = first + alone};
  table.attention(args);
  args.before = args.parts;
  args.parts = floats_of(two);
  args.tile_begin = args.tile_end;
  args.tile_end += goes_on;
  table.attention(args);
  args.before = nullptr;
  args.parts = floats_of(rest);
  args.tile_begin = args.tile_end;
  args.tile_end = end;
  args.each_tile = true;
  if (args.tile_begin < end) table.attention(args);
  const int64_t n_rest = end - args.tile_begin;
  for (auto [begin, past] : {std::pair{0, n / 2}, {n / 2, n}}) {
    AttentionMergeArgs merge{.v_dim = shape.v_dim,
                             .queries = list.data(),
                             .n_queries = n,
                             .query_begin = begin,
                             .query_end = past,
                             .total = floats_of(two),
                             .parts = floats_of(rest),
                             .n_parts = n_rest / 2,
                             .last = false};
    table.attention_merge(merge);
    merge.parts += merge.n_parts * part.total;
    merge.n_parts = n_rest - merge.n_parts;
    merge.last = true;
    table.attention_merge(merge);
  }
  return out;
}

}  // namespace stoker::kernels
