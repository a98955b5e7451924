// Promises P1 and P2: the bits of a row of logits depend on the tokens of its sequence alone. Each test computes the
// logits of a text once, one token at a time, on scalar kernels with one thread, and then in other ways.
#include "tests/model/invariance.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <random>
#include <utility>

namespace stoker::model {
namespace {

using namespace testing;

// Shapes that cross the borders: rows of 1 and 15 mod 16, heads of 16, 64, 80, 128 and 256, windows that end inside a
// tile, every kernel class; 200 tokens cross three tiles.
const std::vector<std::string>& models() {
  static const std::vector<std::string> names = {"llama",
                                                 "llama-rows-1",
                                                 "llama-rows-15",
                                                 "llama-d64-mqa",
                                                 "llama-d80-mha",
                                                 "qwen3-d128",
                                                 "gemma2-d256",
                                                 "gemma3",
                                                 "gemma3-d256",
                                                 "llama-fused-qkv",
                                                 "qwen2",
                                                 "mix-gemma3",
                                                 "mix-qwen2",
                                                 "type-q4_1",
                                                 "type-q5_0",
                                                 "type-q8_0",
                                                 "type-q4_k",
                                                 "type-q6_k",
                                                 "type-q2_k",
                                                 "type-q3_k",
                                                 "type-q5_k",
                                                 "type-iq4_xs",
                                                 "type-iq4_nl",
                                                 "type-mxfp4",
                                                 "type-q4_0",
                                                 "type-q5_1",
                                                 "type-f16",
                                                 "type-bf16",
                                                 "tied-q6_k",
                                                 "tied-q4_1",
                                                 "mixtral",
                                                 "olmoe",
                                                 "qwen2moe",
                                                 "qwen3moe",
                                                 "gpt-oss-mxfp4",
                                                 "glm4moe-groups",
                                                 "deepseek",
                                                 "ernie4_5",
                                                 "ernie4_5-moe-step",
                                                 "granite",
                                                 "granitemoe",
                                                 "bailingmoe",
                                                 "bailingmoe2",
                                                 "dots1",
                                                 "minimax-m2",
                                                 "cohere2",
                                                 "mistral3",
                                                 "starcoder2",
                                                 "deepseek2",
                                                 "mistral4",
                                                 "deepseek2-joined-q8_0",
                                                 "glm-dsa",
                                                 "gemma4",
                                                 "gemma3n",
                                                 "deepseek4",
                                                 "qwen3next-joined",
                                                 "qwen35-layers",
                                                 "kimi-linear-joined",
                                                 "kimi-k3",
                                                 "falcon-h1",
                                                 "granitehybrid-experts"};
  return names;
}

// Families that add no step to those above, only other tables and options of the same steps.
const std::vector<std::string>& models_in_short() {
  static const std::vector<std::string> names = {"command-r",
                                                 "glm4",
                                                 "mistral3-experts",
                                                 "olmo2-window",
                                                 "phi3",
                                                 "phi3-window",
                                                 "smollm3",
                                                 "hunyuan-moe",
                                                 "hy_v3",
                                                 "phimoe",
                                                 "gptneox",
                                                 "falcon-40b",
                                                 "gpt2",
                                                 "stablelm-12b",
                                                 "apertus",
                                                 "mimo2",
                                                 "exaone-moe",
                                                 "minicpm-defaults",
                                                 "deepseek32",
                                                 "gemma4-moe",
                                                 "qwen3next",
                                                 "qwen35",
                                                 "qwen35-axes",
                                                 "qwen35-q8_0",
                                                 "qwen35moe",
                                                 "kimi-linear",
                                                 "kimi-linear-q8_0",
                                                 "granitehybrid",
                                                 "lfm2",
                                                 "lfm2moe",
                                                 "deepseek4-layers",
                                                 "deepseek4-q8_0",
                                                 "kimi-k3-plain",
                                                 "kimi-k3-layers",
                                                 "nemotron_h",
                                                 "nemotron_h_moe",
                                                 "nemotron_h_moe-groups",
                                                 "falcon-h1-norm",
                                                 "baichuan-13b",
                                                 "afmoe",
                                                 "step35",
                                                 "laguna",
                                                 "laguna-whole",
                                                 "cohere2moe",
                                                 "dbrx",
                                                 "granite_swa",
                                                 "smallthinker-window",
                                                 "bloom",
                                                 "deci",
                                                 "mpt",
                                                 "olmo",
                                                 "llama4-chunks",
                                                 "llama4-q8_0"};
  return names;
}

class Invariance : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    static std::map<std::string, std::pair<std::vector<int32_t>, Rows>> all;  // computed once for the tests of a model
    auto& [tokens, want] = all[GetParam()];
    if (want.empty()) {
      tokens = text(Loaded(tiny_path(GetParam())).n_vocab(), 200, 1);
      want = alone(GetParam(), tokens);
    }
    tokens_ = tokens, want_ = want;
  }
  std::vector<int32_t> tokens_;
  Rows want_;
};

/// One way of cutting the work.
struct Cut {
  int64_t chunk;  ///< Rows per call.
  int threads;
  int64_t chunk_rows = 0;  ///< Rows per step.
};

std::vector<Cut> cuts(Isa isa) {
  if (std::getenv("STOKER_LONG_TESTS")) {
    std::vector<Cut> all;
    for (int64_t chunk : {1, 2, 3, 7, 16, 64, 512}) {
      for (int threads : {1, 2, 3, 4}) all.push_back({chunk, threads});
    }
    return all;
  }
  if (isa == Isa::kScalar) return {{16, 2}, {512, 1}};
  return {{1, 2}, {2, 1}, {3, 3}, {7, 2}, {16, 1}, {64, 4}, {512, 2}, {512, 2, 33}};
}

TEST_P(Invariance, AnyChunkAnyIsaAnyThreads) {
  for (Isa isa : available_isas()) {
    if (!kernels::table_for(isa)) continue;  // not built yet; runnable_tables() says which are
    for (const Cut& cut : cuts(isa)) {
      Loaded loaded(tiny_path(GetParam()),
                    {.isa = isa, .threads = cut.threads, .kv = kernels::KvType::kF16, .chunk_rows = cut.chunk_rows});
      expect_same(all_logits(loaded, tokens_, cut.chunk), want_,
                  std::string(isa_name(isa)) + ", " + std::to_string(cut.threads) + " threads, chunks of " +
                      std::to_string(cut.chunk));
    }
  }
}

TEST(InvarianceShort, AnyChunkAndIsa) {
  for (const std::string& name : models_in_short()) {
    const auto tokens = text(Loaded(tiny_path(name)).n_vocab(), 80, 1);
    const Rows want = alone(name, tokens);
    const Cut cuts[] = {{1, 3}, {7, 2}, {80, 2, 33}};
    for (Isa isa : available_isas()) {
      const Cut& cut = cuts[static_cast<size_t>(isa) % std::size(cuts)];
      Loaded loaded(tiny_path(name),
                    {.isa = isa, .threads = cut.threads, .kv = kernels::KvType::kF16, .chunk_rows = cut.chunk_rows});
      expect_same(all_logits(loaded, tokens, cut.chunk), want, name + " on " + std::string(isa_name(isa)));
    }
  }
}

/// Feeds several sequences in mixed batches: at each call some of them go on by a few tokens, others by one.
TEST_P(Invariance, MixedWithOtherSequences) {
  Loaded loaded(tiny_path(GetParam()), {.isa = available_isas().back(),
                                        .threads = 2,
                                        .kv = kernels::KvType::kF16,
                                        .positions = 4096,
                                        .chunk_rows = 6,
                                        .scatter_seed = 7});
  constexpr size_t kSequences = 5;
  std::vector<std::vector<int32_t>> texts;
  std::vector<Rows> got(kSequences);
  std::vector<Sequence> sequences;
  for (size_t s = 0; s < kSequences; ++s) {
    texts.push_back(s == 0 ? tokens_ : text(loaded.n_vocab(), 60 + 37 * s, static_cast<uint32_t>(s)));
    sequences.emplace_back(*loaded.kv);
  }
  std::mt19937 random(3);
  for (bool more = true; more;) {
    more = false;
    std::vector<Span> batch;
    std::vector<size_t> who;
    for (size_t s = 0; s < kSequences; ++s) {
      const auto at = static_cast<size_t>(sequences[s].length());
      const size_t left = texts[s].size() - at;
      if (left == 0) continue;
      more = true;
      const size_t n = std::min(left, random() % 2 ? size_t{1} : size_t{1} + random() % 9);
      batch.push_back({.sequence = &sequences[s],
                       .tokens = std::span(texts[s]).subspan(at, n),
                       .position = static_cast<int64_t>(at),
                       .logits = {0, static_cast<int64_t>(n)}});
      who.push_back(s);
    }
    if (!more) break;
    auto outputs = loaded.runner->forward(batch);
    ASSERT_TRUE(outputs) << outputs.error().message;
    int64_t row = 0;
    for (size_t i = 0; i < batch.size(); ++i) {
      for (size_t j = 0; j < batch[i].tokens.size(); ++j, ++row) {
        got[who[i]].emplace_back(outputs->logits_row(row), outputs->logits_row(row) + loaded.n_vocab());
      }
    }
  }
  expect_same(got[0], want_, "sequence 0 of 5");
  // Sequence 0 has been compared with scalar kernels; for others these would take most of the test's time.
  for (size_t s : {size_t{2}, size_t{4}}) {
    expect_same(got[s], alone(GetParam(), texts[s], kernels::KvType::kF16, available_isas().back()),
                "sequence " + std::to_string(s) + " of 5");
  }
}

TEST_P(Invariance, ForkedTruncatedRecycled) {
  Loaded loaded(tiny_path(GetParam()), {.isa = available_isas().back(),
                                        .threads = 2,
                                        .kv = kernels::KvType::kF16,
                                        .positions = 1024,
                                        .scatter_seed = 11});
  const auto feed = [&](Sequence& sequence, std::span<const int32_t> tokens, Rows* rows) {
    for (size_t at = 0; at < tokens.size(); at += 32) {
      const auto part = tokens.subspan(at, std::min<size_t>(32, tokens.size() - at));
      const Span span{.sequence = &sequence,
                      .tokens = part,
                      .position = sequence.length(),
                      .logits = {0, static_cast<int64_t>(part.size())}};
      auto outputs = loaded.runner->forward({&span, 1});
      ASSERT_TRUE(outputs) << outputs.error().message;
      for (int64_t i = 0; rows && i < outputs->n_logits; ++i)
        rows->emplace_back(outputs->logits_row(i), outputs->logits_row(i) + loaded.n_vocab());
    }
  };
  const std::span<const int32_t> all(tokens_);
  {  // fill and free pages, so that later ones hold another text's K and V
    Sequence other(*loaded.kv);
    feed(other, text(loaded.n_vocab(), 500, 99), nullptr);
  }
  Sequence first(*loaded.kv);
  feed(first, all.first(100), nullptr);
  Sequence fork = first.fork();
  feed(first, text(loaded.n_vocab(), 40, 5), nullptr);  // the original goes another way
  Rows rows;
  feed(fork, all.subspan(100), &rows);
  expect_same(rows, Rows(want_.begin() + 100, want_.end()), "fork at 100");
  const int64_t cut = first.cut_point(70);  // 70 itself, where any will do
  ASSERT_TRUE(first.truncate(cut));
  rows.clear();
  feed(first, all.subspan(static_cast<size_t>(cut)), &rows);
  expect_same(rows, Rows(want_.begin() + cut, want_.end()), "cut to 70 and continued");
}

INSTANTIATE_TEST_SUITE_P(Tiny, Invariance, ::testing::ValuesIn(models()), [](const auto& tested) {
  std::string name = tested.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

// The tests above mean something only if what they name really ran.
TEST(InvariancePlan, NamedIsaManyRowsAndWorkersReallyRun) {
  for (Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    const auto table = kernels::table_for(isa);
    if (!table) continue;
    for (const std::string& name : models()) {
      Loaded loaded(tiny_path(name), {.isa = isa, .threads = 4});
      EXPECT_EQ(loaded.pool->size(), 4);
      for (const Step& step : loaded.model->plan().steps) {
        for (int i = 0; i < step.n_targets; ++i) {
          const Target& target = step.targets[static_cast<size_t>(i)];
          EXPECT_EQ(target.isa, isa) << name << ": " << target.w->name;
          EXPECT_TRUE(target.kernels.one && target.kernels.few && target.kernels.many) << name;
          if (isa != Isa::kScalar) {
            EXPECT_NE(target.kernels.many, target.kernels.one) << name << ": " << target.w->name;
          }
        }
      }
    }
  }
}

std::atomic<int> workers_seen;
void (*real_add)(const float*, const float*, int64_t, float*) noexcept;
void counting_add(const float* x, const float* b, int64_t n, float* y) noexcept {
  static thread_local bool counted = false;
  if (!std::exchange(counted, true)) ++workers_seen;
  real_add(x, b, n, y);
}

/// Attention with the first two tiles in the wrong order. Where both are wholly visible this changes nothing but the
/// order in which they are merged.
kernels::AttentionFn real_attention;
void swapped_attention(const kernels::AttentionArgs& args) noexcept {
  bool whole = true;
  for (int i = 0; i < args.n_queries; ++i) whole = whole && args.queries[i].begin == 0 && args.queries[i].end >= 128;
  kernels::AttentionArgs copy = args;
  const std::byte* pages[4];
  if (whole) {
    for (int64_t t = 0; t * 64 < args.queries[args.n_queries - 1].end; ++t) pages[t] = args.pages[t];
    std::swap(pages[0], pages[1]);
    copy.pages = pages;
  }
  real_attention(copy);
}

TEST(InvariancePlan, PlantedFaultIsSeenAndAllWorkersWork) {
  kernels::Table table = *kernels::runnable_tables().back();
  real_attention = std::exchange(table.attention, swapped_attention);
  real_add = std::exchange(table.add, counting_add);
  workers_seen = 0;
  Loaded loaded(tiny_path("llama"), {.threads = 2, .kv = kernels::KvType::kF16, .table = &table});
  const auto tokens = text(loaded.n_vocab(), 200, 1);
  const Rows got = all_logits(loaded, tokens, 64), want = alone("llama", tokens);
  size_t differ = 0;
  for (size_t i = 0; i < got.size(); ++i) differ += !same_bits(got[i], want[i]);
  EXPECT_GT(differ, 10u) << "another merge order must show in the bits of positions from 127 on";
  for (size_t i = 0; i < 127; ++i) EXPECT_TRUE(same_bits(got[i], want[i])) << i;
  EXPECT_EQ(workers_seen, 2);
}

/// Logits of the next token of each sequence, read by all of them in one call.
Rows next_tokens(Runner& runner, std::vector<Sequence>& sequences, int32_t token) {
  std::vector<Span> batch;
  for (Sequence& s : sequences) {
    batch.push_back({.sequence = &s, .tokens = {&token, 1}, .position = s.length(), .logits = {0, 1}});
  }
  auto outputs = runner.forward(batch);
  EXPECT_TRUE(outputs) << outputs.error().message;
  Rows rows;
  for (int64_t i = 0; i < outputs->n_logits; ++i) {
    rows.emplace_back(outputs->logits_row(i), outputs->logits_row(i) + runner.plan().config->n_vocab);
  }
  return rows;
}

std::atomic<int> merges;
kernels::AttentionMergeFn real_merge;
void counting_merge(const kernels::AttentionMergeArgs& args) noexcept {
  ++merges;
  real_merge(args);
}

/// Long sequences, fewer of them and of heads than workers: these share tiles, here also in rounds of few.
TEST(InvarianceTiles, SharedAmongWorkers) {
  kernels::Table table = *kernels::runnable_tables().back();
  real_merge = std::exchange(table.attention_merge, counting_merge);
  for (const char* name : {"llama-d64-mqa", "gemma3-d256", "llama-d80-mha", "deepseek2", "deepseek32"}) {
    for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{1290}, {1300, 70, 450}}) {
      Rows want;
      for (int threads : {1, 2, 3, 5}) {
        Loaded loaded(tiny_path(name), {.threads = threads, .positions = 4096, .table = &table});
        auto runner = Runner::create(loaded.model->plan(), *loaded.pool, loaded.ledger, {.parts_bytes = 0});
        ASSERT_TRUE(runner) << runner.error().message;
        std::vector<Sequence> sequences;
        for (int64_t length : lengths) {
          const auto tokens = text(loaded.n_vocab(), static_cast<size_t>(length), static_cast<uint32_t>(length));
          sequences.emplace_back(*loaded.kv);
          for (size_t at = 0; at < tokens.size(); at += 512) {
            const Span span{.sequence = &sequences.back(),
                            .tokens = std::span(tokens).subspan(at, std::min<size_t>(512, tokens.size() - at)),
                            .position = sequences.back().length()};
            ASSERT_TRUE((*runner)->forward({&span, 1}));
          }
        }
        merges = 0;
        const Rows got = next_tokens(**runner, sequences, 5);
        if (std::string(name).ends_with("mqa")) {  // The others have as many heads as some of these have threads.
          EXPECT_EQ(merges > 0, threads > 1);
        }
        if (threads == 1) {
          want = got;
          continue;
        }
        expect_same(got, want, std::string(name) + " in rounds, " + std::to_string(threads) + " threads");
        for (Sequence& s : sequences) ASSERT_TRUE(s.truncate(s.length() - 1));
        expect_same(next_tokens(*loaded.runner, sequences, 5), want, std::string(name) + ", at once");
      }
    }
  }
}

/// A call of several sequences, of which some rows want logits and others hidden states.
struct SparseOutputs {
  Rows logits, hidden;
};
SparseOutputs sparse_outputs(const std::string& name, int64_t chunk_rows) {
  Loaded loaded(tiny_path(name), {.isa = available_isas().back(), .threads = 2, .chunk_rows = chunk_rows});
  const auto a = text(loaded.n_vocab(), 90, 1), b = text(loaded.n_vocab(), 3, 2), c = text(loaded.n_vocab(), 40, 3);
  std::vector<Sequence> sequences;
  for (int i = 0; i < 3; ++i) sequences.emplace_back(*loaded.kv);
  const Span spans[] = {{.sequence = &sequences[0], .tokens = a, .logits = {20, 22}, .hidden = {30, 60}},
                        {.sequence = &sequences[1], .tokens = b, .logits = {2, 3}},
                        {.sequence = &sequences[2], .tokens = c, .hidden = {0, 40}}};
  SparseOutputs out;
  auto outputs = loaded.runner->forward(spans);
  EXPECT_TRUE(outputs) << outputs.error().message;
  EXPECT_TRUE(outputs->failures.empty());
  for (int64_t i = 0; i < outputs->n_logits; ++i)
    out.logits.emplace_back(outputs->logits_row(i), outputs->logits_row(i) + loaded.n_vocab());
  for (int64_t i = 0; i < outputs->n_hidden; ++i)
    out.hidden.emplace_back(outputs->hidden_row(i), outputs->hidden_row(i) + loaded.model->config().dim);
  return out;
}

TEST(InvarianceChunks, OutputsOfSomeRows) {
  for (const char* name : {"llama", "gpt-oss-mxfp4", "qwen2moe", "deepseek2", "glm-dsa", "gemma4", "gemma4-moe",
                           "qwen3next-joined", "qwen35-layers", "kimi-linear-joined", "kimi-k3-layers", "deepseek4",
                           "falcon-h1", "nemotron_h_moe", "laguna", "cohere2moe", "smallthinker", "gemma3n", "deci"}) {
    const SparseOutputs want = sparse_outputs(name, 0);
    ASSERT_EQ(want.logits.size(), 3u);
    ASSERT_EQ(want.hidden.size(), 70u);
    for (int64_t chunk_rows : {1, 7, 25, 64}) {
      const SparseOutputs got = sparse_outputs(name, chunk_rows);
      expect_same(got.logits, want.logits, std::string(name) + ": logits");
      expect_same(got.hidden, want.hidden, std::string(name) + ": hidden states");
    }
  }
}

TEST(InvarianceKv, OtherElementTypes) {
  for (kernels::KvType kv : {kernels::KvType::kBf16, kernels::KvType::kF32, kernels::KvType::kQ8_0}) {
    for (const char* name : {"llama", "llama-d80-mha", "gemma3", "deepseek2", "deepseek32", "deepseek4"}) {
      if (kv == kernels::KvType::kQ8_0 && std::string(name) == "deepseek4") continue;  // refused
      Loaded loaded(tiny_path(name), {.isa = available_isas().back(), .threads = 2, .kv = kv, .scatter_seed = 5});
      const auto tokens = text(loaded.n_vocab(), 150, 2);
      expect_same(all_logits(loaded, tokens, 64), alone(name, tokens, kv),
                  std::string(name) + ", kv type " + std::to_string(static_cast<int>(kv)));
    }
  }
}

}  // namespace
}  // namespace stoker::model
