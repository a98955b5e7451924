// bench_attention [ISA] [TYPE] [DIM]: attention of every table against what bounds it.
//
// 1 to 8 queries per key-value head (decode) in GB/s of K and V, and as a share of a plain read loop over the same
// memory; 64 queries (prefill) in GFLOP/s, and as a share of the fma peak. Pages lie as in a model: one holds a tile of
// all heads. Times are the median piece, a head, in thread processor time; two threads work on heads of their own, and
// their rates are added.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/buffer.h"
#include "bench/values.h"
#include "engine/bench_peaks.h"
#include "kernels/kv_layout.h"
#include "kernels/table.h"

namespace stoker::bench {
namespace {

using engine::float_peak;
using engine::read_all;
using engine::thread_seconds;
using kernels::AttentionQuery;
using kernels::KvType;
using kernels::Table;

constexpr int64_t kCacheBytes = 192 << 20;  // Several times the last-level cache.
constexpr const char* kTypeNames[] = {"f16", "bf16", "f32", "q8_0"};

/// Per second: the sum over threads of n / (median time of piece(thread, i)).
template <class F>
double rate(int n_threads, int n_pieces, double n, F piece) {
  std::vector<double> rates(static_cast<size_t>(n_threads));
  const auto work = [&](int thread) {
    std::vector<double> seconds;
    for (int i = 0; i < n_pieces; ++i) {
      const double begin = thread_seconds();
      piece(thread, i);
      seconds.push_back(thread_seconds() - begin);
    }
    std::nth_element(seconds.begin(), seconds.begin() + n_pieces / 2, seconds.end());
    rates[static_cast<size_t>(thread)] = n / seconds[static_cast<size_t>(n_pieces / 2)];
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < n_threads; ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
  double sum = 0;
  for (double r : rates) sum += r;
  return sum;
}

/// K and V of as many heads as fill the memory.
struct Cache {
  Cache(KvType type, int dim, int64_t positions, Ledger& ledger)
      : tile_bytes(kernels::kv_tile_bytes(type, dim)),
        n_tiles(positions / kernels::kTilePositions),
        n_heads(std::max<int64_t>(4, kCacheBytes / (2 * tile_bytes * n_tiles))),
        memory(Buffer::allocate(ledger, "bench", static_cast<uint64_t>(2 * tile_bytes * n_tiles * n_heads)).value()) {
    const std::vector<float> x = values(64 * dim);
    const Table& table = *kernels::runnable_tables().back();
    for (int64_t t = 0; t < n_tiles; ++t) {
      std::byte* page = memory.data() + 2 * t * n_heads * tile_bytes;
      pages.push_back(page);
      for (int64_t i = 0; i < 2 * n_heads; ++i) {
        (i % 2 ? table.store_v : table.store_k)({.type = type,
                                                 .dim = dim,
                                                 .tile = page + i * tile_bytes,
                                                 .position = 0,
                                                 .n = 64,
                                                 .x = x.data(),
                                                 .stride = dim});
      }
    }
  }
  int64_t head_bytes() const { return 2 * tile_bytes * n_tiles; }

  int64_t tile_bytes, n_tiles, n_heads;
  Buffer memory;
  std::vector<const std::byte*> pages;
};

struct Shape {
  const Table& table;
  KvType type;
  int dim, n_queries, n_threads;
};

/// K and V of a head per second.
double heads_per_second(const Cache& cache, const Shape& s, const std::vector<float>& q,
                        const std::vector<Buffer>& scratch) {
  const int64_t positions = cache.n_tiles * kernels::kTilePositions;
  std::vector<float> out(static_cast<size_t>(s.n_threads * 64 * s.dim));
  return rate(s.n_threads, s.n_queries > 8 ? 5 : 15, 1, [&](int thread, int i) {
    AttentionQuery queries[64];
    for (int j = 0; j < s.n_queries; ++j) {
      queries[j] = {.q = q.data() + j * s.dim,
                    .out = out.data() + (thread * 64 + j) * s.dim,
                    .begin = 0,
                    .end = positions,
                    .sink = nullptr};
    }
    const int64_t head = (i * s.n_threads + thread) % cache.n_heads;
    s.table.attention({.type = s.type,
                       .k_dim = s.dim,
                       .v_dim = s.dim,
                       .scale = 0.1f,
                       .softcap = 0,
                       .queries = queries,
                       .n_queries = s.n_queries,
                       .pages = cache.pages.data(),
                       .k_offset = 2 * head * cache.tile_bytes,
                       .v_offset = (2 * head + 1) * cache.tile_bytes,
                       .scratch = scratch[static_cast<size_t>(thread)].data()});
  });
}

void bench(const Table& table, KvType type, int dim, int64_t positions, Ledger& ledger) {
  const Cache cache(type, dim, positions, ledger);
  const std::vector<float> q = values(64 * dim);
  std::vector<Buffer> scratch;
  for (int i = 0; i < 2; ++i) {
    const int64_t bytes = kernels::attention_scratch_bytes(dim, dim);
    scratch.push_back(Buffer::allocate(ledger, "scratch", static_cast<uint64_t>(bytes)).value());
  }
  for (int n_threads : {1, 2}) {
    const auto bytes = static_cast<double>(cache.head_bytes());
    const double read = rate(n_threads, 15, bytes, [&](int thread, int i) {
      const int64_t n = cache.n_heads;
      read_all(cache.memory.data() + (i * n_threads + thread) % n * cache.head_bytes(),
               static_cast<size_t>(cache.head_bytes()));
    });
    const double peak = float_peak(table.isa) * n_threads;
    std::printf("%-7s %-4s dim %3d, %5ld positions, %dt: read %4.1f GB/s;", isa_name(table.isa).data(),
                kTypeNames[static_cast<int>(type)], dim, static_cast<long>(positions), n_threads, read / 1e9);
    for (int n : {1, 2, 4, 8}) {
      const double got = bytes * heads_per_second(cache, {table, type, dim, n, n_threads}, q, scratch);
      std::printf(" %d: %4.1f (%2.0f %%)", n, got / 1e9, 100 * got / read);
    }
    for (int n : {32, 64}) {
      const double flops = 4.0 * n * dim * static_cast<double>(positions);
      const double got = flops * heads_per_second(cache, {table, type, dim, n, n_threads}, q, scratch);
      std::printf(" %d: %3.0f GFLOP/s (%2.0f %%)", n, got / 1e9, 100 * got / peak);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

int run(const std::string& isa, const std::string& type, int dim) {
  Ledger ledger(uint64_t{1} << 32);
  for (const Table* table : kernels::runnable_tables()) {
    if (isa.empty() ? table->isa != Isa::kAvx512 : isa_name(table->isa) != isa) continue;
    for (int t = 0; t < kernels::kKvTypes; ++t) {
      if (type.empty() ? t != 0 : type != kTypeNames[t]) continue;
      for (int d : {64, 80, 128, 256}) {
        if (dim != 0 ? d != dim : d == 80) continue;
        for (int64_t positions : {4096, 16384}) bench(*table, static_cast<KvType>(t), d, positions, ledger);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace stoker::bench

int main(int argc, char** argv) {
  return stoker::bench::run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "", argc > 3 ? std::atoi(argv[3]) : 0);
}
