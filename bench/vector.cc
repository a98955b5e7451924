// bench_vector [ISA]: attention, quantizers, KV stores and the element-wise functions of every table, on one thread.
//
// Attention with 1 ... 8 queries (decode) is quoted in GB/s of K and V read from memory, with 16 and more (prefill) in
// GFLOP/s. Times are the median piece in thread processor time, so that a busy machine shows less.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/f16.h"
#include "bench/values.h"
#include "engine/bench_peaks.h"
#include "kernels/kv_layout.h"
#include "kernels/table.h"

namespace stoker::bench {
namespace {

using engine::thread_seconds;
using kernels::AttentionQuery;
using kernels::KvType;
using kernels::Table;

constexpr int64_t kPositions = 2048, kHeads = 32;

template <class F>
double median_seconds(int n, F piece) {
  std::vector<double> seconds;
  for (int i = 0; i < n; ++i) {
    const double begin = thread_seconds();
    piece(i);
    seconds.push_back(thread_seconds() - begin);
  }
  std::nth_element(seconds.begin(), seconds.begin() + n / 2, seconds.end());
  return seconds[static_cast<size_t>(n / 2)];
}

/// K and V of kHeads heads of kPositions positions, in the form of `type`: one page per head and tile.
struct Cache {
  Cache(KvType type, int dim, Ledger& ledger) : tile_bytes(kernels::kv_tile_bytes(type, dim)) {
    const int64_t n_tiles = kHeads * kPositions / kernels::kTilePositions;
    memory = Buffer::allocate(ledger, "bench", static_cast<uint64_t>(2 * n_tiles * tile_bytes)).value();
    const std::vector<float> x = values(64 * dim);
    const int64_t stride = dim;
    for (int64_t i = 0; i < n_tiles; ++i) {
      pages.push_back(memory.data() + 2 * i * tile_bytes);
      std::byte* page = memory.data() + 2 * i * tile_bytes;
      const kernels::KvStoreArgs k{
          .type = type, .dim = dim, .tile = page, .position = 0, .n = 64, .x = x.data(), .stride = stride};
      kernels::KvStoreArgs v = k;
      v.tile = page + tile_bytes;
      const Table& table = *kernels::runnable_tables().back();
      table.store_k(k);
      table.store_v(v);
    }
  }
  const std::byte* const* head(int64_t i) const {
    return pages.data() + i % kHeads * (kPositions / kernels::kTilePositions);
  }

  int64_t tile_bytes;
  Buffer memory;
  std::vector<const std::byte*> pages;
};

void bench_attention(const Table& table, Ledger& ledger, const char* name, KvType type, int dim) {
  const Cache cache(type, dim, ledger);
  Buffer scratch =
      Buffer::allocate(ledger, "scratch", static_cast<uint64_t>(kernels::attention_scratch_bytes(dim, dim))).value();
  const std::vector<float> q = values(64 * dim);
  std::vector<float> out(static_cast<size_t>(64 * dim));
  const double bytes = static_cast<double>(2 * cache.tile_bytes * kPositions / kernels::kTilePositions);
  std::printf("%-8s attention %-4s dim %3d:", isa_name(table.isa).data(), name, dim);
  for (int n : {1, 2, 4, 8, 16, 32, 64}) {
    std::vector<AttentionQuery> queries;
    for (int i = 0; i < n; ++i) queries.push_back({q.data() + i * dim, out.data() + i * dim, 0, kPositions, nullptr});
    const double seconds = median_seconds(n > 8 ? 7 : 2 * kHeads, [&](int i) {
      table.attention({.type = type,
                       .k_dim = dim,
                       .v_dim = dim,
                       .scale = 0.1f,
                       .softcap = 0,
                       .queries = queries.data(),
                       .n_queries = n,
                       .pages = cache.head(i),
                       .k_offset = 0,
                       .v_offset = cache.tile_bytes,
                       .scratch = scratch.data()});
    });
    const double flops = 4.0 * n * dim * kPositions;
    if (n <= 8) {
      std::printf(" %d: %.1f GB/s", n, bytes / seconds / 1e9);
    } else {
      std::printf(" %d: %.0f GFLOP/s", n, flops / seconds / 1e9);
    }
  }
  std::printf("\n");
}

void bench_rows(const Table& table) {
  constexpr int64_t kN = 4096;
  const std::vector<float> x = values(kN), b = values(kN);
  std::vector<float> y = x;
  std::vector<int8_t> q(kN);
  std::vector<float> d(kN / 32);
  std::vector<int16_t> sums(kN / 16);
  const kernels::QuantizeArgs args{.x = x.data(),
                                   .stride = kN,
                                   .n = 1,
                                   .k = kN,
                                   .row_begin = 0,
                                   .row_end = 1,
                                   .q = q.data(),
                                   .d = d.data(),
                                   .sums = sums.data(),
                                   .bad = nullptr};
  const auto show = [&](const char* name, auto f) {
    const double seconds = median_seconds(31, [&](int) {
      for (int i = 0; i < 100; ++i) f();
    });
    std::printf(" %s %.2f", name, seconds / 100 * 1e6);
  };
  std::printf("%-8s us per row of 4096:", isa_name(table.isa).data());
  show("a256", [&] { table.quantize_a256(args); });
  show("a32", [&] { table.quantize_a32(args); });
  show("rms_norm", [&] { table.rms_norm(x.data(), b.data(), 1e-5f, kN, y.data()); });
  show("layer_norm", [&] { table.layer_norm(x.data(), b.data(), 1e-5f, kN, y.data()); });
  show("add", [&] { table.add(x.data(), b.data(), kN, y.data()); });
  show("silu_mul", [&] { table.silu_mul(x.data(), b.data(), kN, y.data()); });
  show("gelu_mul", [&] { table.gelu_mul(x.data(), b.data(), kN, y.data()); });
  show("clamped_silu_mul", [&] { table.clamped_silu_mul(x.data(), b.data(), kN, y.data()); });
  show("add_scaled", [&] { table.add_scaled(0.5f, x.data(), kN, y.data()); });
  show("rope_halves", [&] { table.rope_halves(y.data(), x.data(), b.data(), kN / 2); });
  show("rope_interleaved", [&] { table.rope_interleaved(y.data(), x.data(), b.data(), kN / 2); });
  show("all_finite", [&] { table.all_finite(x.data(), kN); });
  show("argmax", [&] { table.argmax(x.data(), kN); });
  std::printf("\n");
}

void bench_store(const Table& table, const char* name, KvType type) {
  constexpr int kDim = 128;
  const std::vector<float> x = values(64 * kDim);
  alignas(64) static std::byte tile[64 * kDim * 4];
  std::printf("%-8s store %s, 128 dimensions, ns per position, in runs of 1, 64:", isa_name(table.isa).data(), name);
  for (auto [what, store] : {std::pair{"K", table.store_k}, {"V", table.store_v}}) {
    for (int n : {1, 64}) {
      const kernels::KvStoreArgs args{
          .type = type, .dim = kDim, .tile = tile, .position = 64 - n, .n = n, .x = x.data(), .stride = kDim};
      const double seconds = median_seconds(31, [&, f = store](int) {
        for (int i = 0; i < 640 / n; ++i) f(args);
      });
      std::printf(" %s %.0f", what, seconds / 640 * 1e9);
    }
  }
  std::printf("\n");
}

int run(const std::string& only) {
  Ledger ledger(uint64_t{1} << 32);
  for (const Table* table : kernels::runnable_tables()) {
    const bool wanted = only.empty() ? table->isa != Isa::kScalar : isa_name(table->isa) == only;
    if (!wanted) continue;
    bench_rows(*table);
    bench_store(*table, "f16", KvType::kF16);
    bench_store(*table, "bf16", KvType::kBf16);
    for (int dim : {64, 80, 128, 256}) bench_attention(*table, ledger, "f16", KvType::kF16, dim);
    bench_attention(*table, ledger, "bf16", KvType::kBf16, 128);
    bench_attention(*table, ledger, "f32", KvType::kF32, 128);
  }
  return 0;
}

}  // namespace
}  // namespace stoker::bench

int main(int argc, char** argv) { return stoker::bench::run(argc > 1 ? argv[1] : ""); }
