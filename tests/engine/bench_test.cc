#include "engine/bench.h"

#include <gtest/gtest.h>

#include "tests/model/golden.h"

namespace stoker::engine {
namespace {

std::unique_ptr<Engine> open(const std::string& name, std::span<const BenchCase> tests, int64_t batch = 64) {
  auto engine = Engine::open({.path = model::testing::tiny_path(name), .memory_bytes = 1u << 30, .batch = batch});
  if (!engine) {
    ADD_FAILURE() << engine.error().message;
    std::abort();
  }
  const Status status = (*engine)->load(bench_needs(tests, batch));
  if (!status) ADD_FAILURE() << status.error().message;
  return std::move(*engine);
}

TEST(Bench, NamesAreThePeers) {
  EXPECT_EQ((BenchCase{.n = 512}).name(), "pp512");
  EXPECT_EQ((BenchCase{.generates = true, .n = 128, .depth = 4096}).name(), "tg128@d4096");
  EXPECT_EQ((BenchCase{.generates = true, .n = 128, .streams = 8}).name(), "tg128 x 8");
  EXPECT_EQ((BenchCase{.n = 16, .depth = 64, .streams = 2}).name(), "pp16@d64 x 2");
}

TEST(Bench, CallsHoldEveryTokenOnce) {
  for (const bool generates : {false, true}) {
    for (const int64_t streams : {1, 3, 70}) {
      const BenchCase test{.generates = generates, .n = 50, .streams = streams};
      std::vector<int64_t> next(static_cast<size_t>(streams));
      int64_t n_logits = 0;
      for (const BenchCall& call : bench_calls(test, 64)) {
        int64_t rows = 0;
        for (const BenchPiece& piece : call) {
          EXPECT_EQ(piece.begin, std::exchange(next[static_cast<size_t>(piece.stream)], piece.end));
          EXPECT_EQ(piece.wants_logits, generates || piece.end == test.n);
          n_logits += piece.wants_logits;
          rows += piece.end - piece.begin;
        }
        EXPECT_LE(rows, bench_needs({&test, 1}, 64).max_rows);
      }
      EXPECT_EQ(next, std::vector<int64_t>(next.size(), test.n));
      EXPECT_EQ(n_logits, generates ? test.tokens() : streams);
    }
  }
}

TEST(Bench, DepthsStreamsAndPromptsRunInWhatWasReserved) {
  const BenchCase tests[] = {{.n = 48},
                             {.generates = true, .n = 4},
                             {.generates = true, .n = 3, .depth = 130, .streams = 5},
                             {.n = 100, .depth = 30, .streams = 3},
                             {.generates = true, .n = 2, .depth = 200, .streams = 2},
                             {.generates = true, .n = 1, .streams = 70}};
  auto engine = open("llama", tests);
  EXPECT_EQ(engine->kv().n_pages(), 70);
  BenchOptions options{.repetitions = 3};
  Bench bench(*engine, options);
  for (const BenchCase& test : tests) {
    uint64_t tokens = 0;
    options.on_tokens = [&](uint64_t n) { tokens += n; };
    const uint64_t expected = bench.tokens_of(test);
    const auto row = bench.run(test);
    ASSERT_TRUE(row) << test.name() << ": " << row.error().message;
    EXPECT_EQ(tokens, expected) << test.name();
    EXPECT_TRUE(row->min > 0 && row->min <= row->median && row->median <= row->max);
    EXPECT_EQ(row->test.name(), test.name());
  }
}

TEST(Bench, RepetitionsWantOtherExperts) {
  const std::string path = model::testing::tiny_path("qwen3moe");
  const auto file = gguf::File::open(path);
  ASSERT_TRUE(file);
  uint64_t bytes = 0;
  for (const auto& tensor : file->tensors()) bytes += tensor.name.find("_exps") != std::string::npos ? tensor.bytes : 0;
  // Room for the experts of one token, which the first repetition brings, but not for those of six.
  auto engine = Engine::open({.path = path,
                              .memory_bytes = 1u << 30,
                              .batch = 64,
                              .expert_cache_bytes = bytes * 6 / 10,
                              .expert_lookahead = model::LookaheadUse::kOff});
  ASSERT_TRUE(engine) << engine.error().message;
  const BenchCase test{.generates = true, .n = 1};
  ASSERT_TRUE((*engine)->load(bench_needs({&test, 1}, 64)));
  const BenchOptions options{.repetitions = 5};
  const auto row = Bench(**engine, options).run(test);
  ASSERT_TRUE(row) << row.error().message;
  EXPECT_GT(row->disk_bytes_per_token, 0);
}

TEST(Bench, IsCancelledBetweenForwardPasses) {
  const BenchCase test{.generates = true, .n = 4, .depth = 100};
  auto engine = open("llama", {&test, 1});
  std::atomic<bool> cancel{false};
  const BenchOptions options{.cancel = &cancel, .on_tokens = [&](uint64_t) { cancel = true; }};
  const auto row = Bench(*engine, options).run(test);
  ASSERT_FALSE(row);
  EXPECT_EQ(row.error().code, ErrorCode::kCancelled);
}

/// Bytes of the file's matrices, without the embedding table, and operations of those that multiply int8.
struct Matrices {
  double bytes = 0, int8_ops = 0;
  double row = 0;  ///< Of the embedding table.
  explicit Matrices(const Engine& engine) {
    for (const auto& tensor : engine.file().tensors()) {
      if (tensor.shape.size() < 2) continue;
      const auto n = static_cast<double>(tensor.bytes);
      if (tensor.name == "token_embd.weight") {
        row = n / static_cast<double>(tensor.shape[0]);
        continue;
      }
      bytes += n;
      if (tensor.type() > gguf::TensorType::kF16) int8_ops += 2 * static_cast<double>(tensor.n_elements());
    }
  }
};

TEST(Bench, BytesOfATokenAreWeightsAndWhatItSeesOfTheCache) {
  // Untied, all rows whole groups of 16 but for the 303 of the vocabulary.
  auto engine = open("type-q4_k", {});
  const Matrices m(*engine);
  const double padding = m.row;
  const auto kv = static_cast<double>(engine->model().plan().kv.traits().bytes_per_position);
  const auto of = [&](BenchCase test) { return bench_traffic(engine->model(), test, 64); };

  const auto first = of({.generates = true, .n = 1});
  EXPECT_DOUBLE_EQ(first.bytes_per_token, m.bytes + padding + m.row + kv);
  EXPECT_DOUBLE_EQ(first.int8_ops_per_token, m.int8_ops);
  EXPECT_DOUBLE_EQ(of({.generates = true, .n = 3}).bytes_per_token - first.bytes_per_token, kv);
  EXPECT_DOUBLE_EQ(of({.generates = true, .n = 1, .depth = 100}).bytes_per_token - first.bytes_per_token, 100 * kv);
  const auto four = of({.generates = true, .n = 1, .depth = 10, .streams = 4});
  EXPECT_DOUBLE_EQ(four.bytes_per_token, (m.bytes + padding) / 4 + m.row + 11 * kv);
  EXPECT_DOUBLE_EQ(four.int8_ops_per_token, m.int8_ops);
}

TEST(Bench, APromptReadsWeightsOncePerCallAndTheHeadOnce) {
  auto engine = open("type-q4_k", {});
  const Matrices m(*engine);
  const auto of = [&](int64_t n) {
    const auto t = bench_traffic(engine->model(), {.n = n}, 64);
    return BenchTraffic{t.bytes_per_token * static_cast<double>(n), t.int8_ops_per_token * static_cast<double>(n)};
  };
  EXPECT_NEAR(of(64).bytes_per_token - of(63).bytes_per_token,
              m.row + static_cast<double>(engine->model().plan().kv.traits().bytes_per_position), 0.01);
  // The last layer's feed-forward and the head see only the last token.
  EXPECT_LT(of(64).int8_ops_per_token - of(63).int8_ops_per_token, 0.7 * m.int8_ops);
  // A second call reads what a call without outputs reads, which is less than all of it.
  const double second = of(128).bytes_per_token - of(64).bytes_per_token;
  EXPECT_GT(second, 0.4 * m.bytes);
  EXPECT_LT(second, m.bytes);
}

TEST(Bench, OfWhatIsSelectedOnlyTheKeysGrow) {
  auto engine = open("deepseek32", {});  // 4 layers that each see 70 positions
  const auto of = [&](int64_t depth) {
    return bench_traffic(engine->model(), {.generates = true, .n = 1, .depth = depth}, 64).bytes_per_token;
  };
  const model::KvLayout& kv = engine->model().plan().kv;
  const auto all = static_cast<double>(kv.traits().bytes_per_position);
  const auto keys = static_cast<double>(kv.bytes_per_position(model::StateKind::kIndexKeys));
  EXPECT_DOUBLE_EQ(keys, 4 * 64 * 2);
  EXPECT_DOUBLE_EQ(of(69) - of(59), 10 * (all - keys));
  EXPECT_DOUBLE_EQ(of(1069) - of(69), 1070 * keys);
}

TEST(Bench, OfCompressedRowsThoseOfWholeWindowsGrow) {
  auto engine = open("deepseek4", {});  // windows of 16; rows of 4 positions in two layers, of which 3 are seen
  const auto of = [&](int64_t depth) {
    return bench_traffic(engine->model(), {.generates = true, .n = 1, .depth = depth}, 64).bytes_per_token;
  };
  constexpr double kRow = 48 * 2, kKeyOfPosition = 64 * 2 / 4;
  EXPECT_DOUBLE_EQ(of(13) - of(10), 4 * 3 * kRow + 2 * kRow);
  EXPECT_DOUBLE_EQ(of(2047) - of(1023), 1024 * 2 * kKeyOfPosition + 8 * kRow);
}

TEST(Bench, WindowsAndFloatsAreSeen) {
  auto engine = open("gemma3-d256", {});  // 6 layers of f32, the first five with a window of 70
  const auto of = [&](int64_t depth) {
    return bench_traffic(engine->model(), {.generates = true, .n = 1, .depth = depth}, 64);
  };
  const auto kv = static_cast<double>(engine->model().plan().kv.traits().bytes_per_position);
  EXPECT_DOUBLE_EQ(of(69).bytes_per_token - of(59).bytes_per_token, 10 * kv);
  EXPECT_DOUBLE_EQ(of(1069).bytes_per_token - of(69).bytes_per_token, 1000 * kv / 6);
  EXPECT_EQ(of(0).int8_ops_per_token, 0);
}

}  // namespace
}  // namespace stoker::engine
