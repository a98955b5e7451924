// bench_index [ISA]: scores of an indexer (32 and 64 heads of 128, 32,768 keys in f16) against the fma peak.
//
// One token is what decoding does, 16 are what a prompt does. Times are the best of 25 runs on one thread, in thread
// processor time, and so is the peak: a neighbour on the other half of the core takes a third of both.
#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "bench/values.h"
#include "engine/bench_peaks.h"
#include "kernels/kv_layout.h"
#include "kernels/table.h"

namespace stoker::bench {
namespace {

using kernels::KvType;
using kernels::Table;

constexpr int kDim = 128, kMostHeads = 64, kMostTokens = 16, kRuns = 25;
constexpr int64_t kTiles = 512, kPiece = 32;  // as select_step hands them out
constexpr int64_t kPositions = kTiles * kernels::kTilePositions;

template <class F>
double best_seconds(F f) {
  double best = 1e9;
  for (int i = 0; i < kRuns; ++i) {
    const double begin = engine::thread_seconds();
    f();
    best = std::min(best, engine::thread_seconds() - begin);
  }
  return best;
}

void bench(const Table& table, Ledger& ledger) {
  const int64_t tile_bytes = kernels::kv_tile_bytes(KvType::kF16, kDim);
  Buffer keys = Buffer::allocate(ledger, "bench", static_cast<uint64_t>(tile_bytes * kTiles)).value();
  Buffer scratch =
      Buffer::allocate(ledger, "scratch", static_cast<uint64_t>(kernels::index_scratch_bytes(kDim))).value();
  const std::vector<float> x = values(int64_t{kMostTokens} * kMostHeads * kDim);
  std::vector<float> scores(static_cast<size_t>(kMostTokens * kPositions));
  std::vector<const std::byte*> pages;
  for (int64_t t = 0; t < kTiles; ++t) {
    std::byte* tile = keys.data() + t * tile_bytes;
    pages.push_back(tile);
    table.store_k(
        {.type = KvType::kF16, .dim = kDim, .tile = tile, .position = 0, .n = 64, .x = x.data(), .stride = kDim});
  }
  double peak = 0;
  for (int i = 0; i < 3; ++i) peak = std::max(peak, engine::float_peak(table.isa));
  std::printf("%-9s", isa_name(table.isa).data());
  for (const int n_heads : {32, 64}) {
    for (const int n_tokens : {1, kMostTokens}) {
      const double seconds = best_seconds([&] {
        for (int64_t t = 0; t < kTiles; t += kPiece) {
          table.index_scores({.type = KvType::kF16,
                              .dim = kDim,
                              .n_heads = n_heads,
                              .n_tokens = n_tokens,
                              .q = x.data(),
                              .q_stride = int64_t{n_heads} * kDim,
                              .weights = x.data(),
                              .weight_stride = n_heads,
                              .pages = pages.data(),
                              .k_offset = 0,
                              .tile_begin = t,
                              .tile_end = t + kPiece,
                              .scores = scores.data() + t * kernels::kTilePositions,
                              .score_stride = kPositions,
                              .scratch = scratch.data()});
        }
      });
      const double rate = 2.0 * n_tokens * n_heads * kDim * static_cast<double>(kPositions) / seconds;
      std::printf("  %2d x %d heads: %6.2f ms, %3.0f GFLOP/s (%2.0f %%)", n_tokens, n_heads, seconds * 1e3, rate / 1e9,
                  100 * rate / peak);
    }
  }
  std::printf("\n");
}

}  // namespace
}  // namespace stoker::bench

int main(int argc, char** argv) {
  stoker::Ledger ledger(uint64_t{1} << 30);
  for (const stoker::kernels::Table* table : stoker::kernels::runnable_tables()) {
    if (argc > 1 ? stoker::isa_name(table->isa) == std::string_view(argv[1]) : table->isa != stoker::Isa::kScalar) {
      stoker::bench::bench(*table, ledger);
    }
  }
}
