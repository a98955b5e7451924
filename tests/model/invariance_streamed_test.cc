// The same bits where experts or matrices of layers stay on disk.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "tests/model/invariance.h"

namespace stoker::model {
namespace {

using namespace testing;

/// Drops the file from the page cache, as far as the file system does that.
void make_cold(const std::string& path) {
  const auto file = File::open(path);
  ASSERT_TRUE(file);
  ::fsync(file->fd());
  file->drop_cache(0, file->size());
}

/// Experts from the file, at cache sizes from all of them to less than one: each bit as with all in memory.
class Streamed : public ::testing::TestWithParam<std::string> {};

TEST_P(Streamed, AnyCacheAnyPolicyAnyThreads) {
  const std::string path = tiny_path(GetParam());
  const uint64_t all = Loaded(path).model->expert_index().bytes();
  const uint64_t one = Loaded(path).model->expert_index().layers[0].expert_bytes();
  const auto tokens = text(Loaded(path).n_vocab(), 120, 4);
  const Rows want = alone(GetParam(), tokens);
  struct How {
    uint64_t budget;
    EvictionPolicy::Kind policy;
    BulkReader::Cache cache;
    int threads, lanes;
    int64_t rows, chunk_rows;
    ReaderKind reading = ReaderKind::kThreads;
    LookaheadUse lookahead = LookaheadUse::kOff;
  };
  using Kind = EvictionPolicy::Kind;
  using Cache = BulkReader::Cache;
  constexpr ReaderKind kRing = ReaderKind::kRing;
  const How hows[] = {{all, Kind::kRecency, Cache::kSpare, 2, 4, 32, 0, kRing},
                      {all / 2, Kind::kCounts, Cache::kSpare, 3, 2, 200, 33},
                      {all / 2, Kind::kLikelihood, Cache::kFill, 1, 8, 1, 0, kRing, LookaheadUse::kOn},
                      {all / 10, Kind::kLikelihood, Cache::kSpare, 4, 3, 17, 5},
                      {all / 10, Kind::kRecency, Cache::kSpare, 2, 1, 1, 0, kRing, LookaheadUse::kOn},
                      {one, Kind::kCounts, Cache::kSpare, 2, 4, 50, 7, kRing},
                      {one / 2, Kind::kRecency, Cache::kFill, 2, 2, 1, 0, ReaderKind::kThreads, LookaheadUse::kTry},
                      {0, Kind::kCounts, Cache::kSpare, 1, 1, 64, 0, kRing, LookaheadUse::kOn}};
  for (const How& how : hows) {
    if (how.reading == kRing) make_cold(path);  // Only what the page cache does not have goes through it.
    Loaded loaded(path, {.isa = available_isas().back(),
                         .threads = how.threads,
                         .kv = kernels::KvType::kF16,
                         .chunk_rows = how.chunk_rows,
                         .stream = true,
                         .experts = {.budget_bytes = how.budget,
                                     .lanes = how.lanes,
                                     .policy = how.policy,
                                     .cache = how.cache,
                                     .reading = how.reading},
                         .lookahead = how.lookahead});
    expect_same(all_logits(loaded, tokens, how.rows), want, "a cache of " + std::to_string(how.budget));
    const ExpertStore::Stats stats = loaded.model->experts()->stats();
    EXPECT_EQ(stats.requests, stats.hits + stats.joined + stats.foreseen + stats.misses);
    EXPECT_EQ(stats.errors, 0u);
    EXPECT_GT(stats.misses + stats.foreseen, 0u);
    if (how.budget == all) {
      EXPECT_GT(stats.hits, 0u);
      EXPECT_EQ(stats.evictions + stats.pass_throughs, 0u);
    } else if (how.budget <= one) {
      EXPECT_EQ(stats.hits, 0u);
      EXPECT_GE(stats.pass_throughs, stats.foreseen + stats.misses);
    } else if (how.rows == 1) {
      EXPECT_GT(stats.evictions, 0u);
    }
    EXPECT_LE(stats.resident_bytes, std::max(how.budget, 2 * one));
  }
}

/// A prompt read in one call takes each expert from the file at most once, however long it is and however small the
/// cache.
TEST_P(Streamed, LongPromptReadsEachExpertOnce) {
  const std::string path = tiny_path(GetParam());
  const int64_t n = std::getenv("STOKER_LONG_TESTS") ? 16384 : 2048;
  const Loaded resident(path);
  const ExpertIndex index = resident.model->expert_index();
  uint64_t in_file = 0;
  for (const ExpertIndex::Layer& layer : index.layers) in_file += layer.file_bytes() * layer.experts.size();
  for (const uint64_t budget : {uint64_t{0}, index.bytes() / 4}) {
    Loaded loaded(path, {.isa = available_isas().back(),
                         .threads = 2,
                         .positions = n,
                         .max_rows = n,
                         .chunk_rows = 256,
                         .stream = true,
                         .experts = {.budget_bytes = budget}});
    const auto tokens = text(loaded.n_vocab(), static_cast<size_t>(n), 6);
    Sequence sequence(*loaded.kv);
    const Span span{.sequence = &sequence, .tokens = tokens, .logits = {n - 1, n}};
    ASSERT_TRUE(loaded.runner->forward({&span, 1}));
    const ExpertStore::Stats stats = loaded.model->experts()->stats();
    EXPECT_LE(stats.bytes_read, in_file);
    EXPECT_GT(stats.bytes_read, in_file / 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, Streamed,
                         ::testing::Values("mixtral", "olmoe", "qwen2moe", "qwen3moe", "gpt-oss-mxfp4", "deepseek2",
                                           "glm-dsa", "gemma4-moe", "qwen3next-joined", "kimi-linear", "kimi-k3",
                                           "deepseek4-layers", "nemotron_h_moe"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// Any matrices of layers may stay on disk, whatever else a model has.
class StreamedUnits : public ::testing::TestWithParam<const char*> {
 protected:
  static bool all(const Unit&) { return true; }
  static bool every_second(const Unit&) {
    static int n = 0;
    return ++n % 2 == 0;
  }
  static bool feed_forward(const Unit& unit) { return unit.kind == Unit::Kind::kFeedForward; }
};

TEST_P(StreamedUnits, AnyUnitsAnyChunksAnyThreads) {
  const std::string path = tiny_path(GetParam());
  const auto tokens = text(Loaded(path).n_vocab(), 90, 4);
  const Rows want = alone(GetParam(), tokens);
  struct How {
    bool (*streams)(const Unit&);
    int64_t ring_slots;
    int threads, lanes;
    int64_t rows, chunk_rows;
    bool experts;
  };
  const How hows[] = {{all, 2, 2, 4, 1, 0, false},
                      {all, 3, 3, 2, 90, 17, true},
                      {feed_forward, 2, 1, 1, 64, 5, false},
                      {every_second, 4, 4, 8, 33, 9, true}};
  for (const How& how : hows) {
    Loaded loaded(path, {.isa = available_isas().back(),
                         .threads = how.threads,
                         .kv = kernels::KvType::kF16,
                         .chunk_rows = how.chunk_rows,
                         .stream = how.experts && Loaded(path).model->config().n_experts > 0,
                         .streams_unit = how.streams,
                         .ring_slots = how.ring_slots,
                         .experts = {.budget_bytes = 0, .lanes = how.lanes}});
    const std::string what = std::to_string(how.ring_slots) + " slots, " + std::to_string(how.rows) + " rows";
    expect_same(all_logits(loaded, tokens, how.rows), want, what);
    const ExpertStore* store = loaded.model->unit_store();
    if (!store) continue;  // all layers have experts
    // Each unit of a layer is read once per call, the output matrix for as many rows as have logits at once, and the
    // first ones for the call that did not come.
    uint64_t n_calls = 0, n_passes = 0, n_parts = 0;
    const auto least = [](int64_t a, int64_t b) { return b > 0 ? std::min(a, b) : a; };
    for (int64_t left = 90; left > 0; left -= how.rows, ++n_calls) {
      for (int64_t rows = least(left, how.rows); rows > 0; rows -= least(rows, how.chunk_rows)) {
        const int64_t at_once = loaded.runner->max_logits();
        n_passes += static_cast<uint64_t>((least(rows, how.chunk_rows) + at_once - 1) / at_once);
      }
    }
    for (const ExpertIndex::Layer& unit : store->index().layers)
      n_parts += unit.layer == loaded.model->config().n_layers;
    const ExpertStore::Stats stats = store->stats();
    const auto n_slots = static_cast<uint64_t>(store->n_slots());
    const uint64_t most = n_calls * (store->index().layers.size() - n_parts) + n_passes * n_parts + n_slots;
    EXPECT_LE(stats.misses, most) << what;
    // With fewer parts than slots another pass still finds them.
    if (n_parts == 0 || n_parts >= n_slots || n_passes == n_calls) {
      EXPECT_EQ(stats.misses, most) << what;
    }
    EXPECT_EQ(stats.errors, 0u);
  }
}

/// Spans without outputs, calls without any: the last layer's units are not needed then.
TEST_P(StreamedUnits, OutputsOfSomeRows) {
  const std::string path = tiny_path(GetParam());
  const auto run = [&](bool stream, int64_t chunk_rows) {
    Loaded loaded(path, {.isa = available_isas().back(),
                         .threads = 2,
                         .chunk_rows = chunk_rows,
                         .streams_unit = stream ? all : nullptr,
                         .ring_slots = 3});
    const auto a = text(loaded.n_vocab(), 60, 1), b = text(loaded.n_vocab(), 3, 2), c = text(loaded.n_vocab(), 40, 3);
    Sequence first(*loaded.kv), second(*loaded.kv), third(*loaded.kv);
    const Span silent[] = {{.sequence = &first, .tokens = a}, {.sequence = &second, .tokens = b}};
    EXPECT_TRUE(loaded.runner->forward(silent));
    const Span spans[] = {{.sequence = &second, .tokens = b, .position = 3, .hidden = {1, 3}},
                          {.sequence = &first, .tokens = a, .position = 60},
                          {.sequence = &third, .tokens = c, .logits = {38, 40}, .hidden = {3, 39}}};
    Rows rows;
    for (int again = 0; again < 2; ++again) {
      const auto outputs = loaded.runner->forward(spans);
      EXPECT_TRUE(outputs && outputs->failures.empty());
      for (int64_t i = 0; i < outputs->n_logits; ++i)
        rows.emplace_back(outputs->logits_row(i), outputs->logits_row(i) + loaded.n_vocab());
      for (int64_t i = 0; i < outputs->n_hidden; ++i)
        rows.emplace_back(outputs->hidden_row(i), outputs->hidden_row(i) + loaded.model->config().dim);
      EXPECT_TRUE(second.truncate(3) && first.truncate(60) && third.truncate(0));  // where the last call began
      EXPECT_TRUE(loaded.runner->forward({silent, 0}));
    }
    return rows;
  };
  const Rows want = run(false, 0);
  ASSERT_EQ(want.size(), 80u);
  for (const int64_t chunk_rows : {0, 7, 33}) expect_same(run(true, chunk_rows), want, std::to_string(chunk_rows));
}

INSTANTIATE_TEST_SUITE_P(Tiny, StreamedUnits,
                         ::testing::Values("llama", "llama-fused-qkv", "qwen2", "gemma3", "granite", "mix-qwen2",
                                           "tied-q6_k", "llama-rows-1", "phi3", "starcoder2", "cohere2", "phi2",
                                           "falcon-40b", "deepseek", "glm4moe-groups", "ernie4_5-moe-step",
                                           "gpt-oss-mxfp4", "deepseek2", "deepseek2-q8_0", "deepseek2-joined-q8_0",
                                           "glm-dsa", "gemma3n", "gemma4", "gemma4-moe", "qwen35-layers",
                                           "qwen3next-joined", "kimi-linear-q8_0", "kimi-k3-layers", "nemotron_h",
                                           "falcon-h1", "granitehybrid", "lfm2", "deepseek4"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace stoker::model
