// The entry points by the reference's names, each pinned to its promise. docs/from-the-reference.md is the index.
#include "model/entry.h"

#include <gtest/gtest.h>

#include <cstring>

#include "gguf/file.h"
#include "model/arch/arch.h"
#include "tests/model/golden.h"

namespace stoker::model {
namespace {

using Row = Decoder::Row;

std::unique_ptr<Decoder> open(const std::string& name, Decoder::Options options = {}) {
  auto decoder = Decoder::from_gguf(testing::tiny_path(name), std::move(options));
  if (!decoder) ADD_FAILURE() << decoder.error().message;
  return std::move(*decoder);
}

std::vector<int32_t> tokens(size_t n) {
  std::vector<int32_t> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<int32_t>((i * 37 + 11) % 250);
  return out;
}

void expect_bits(const Row& a, const Row& b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}
void expect_bits(const std::vector<Row>& a, const std::vector<Row>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) expect_bits(a[i], b[i]);
}

/// forward_token for each token in turn.
std::vector<Row> one_by_one(Decoder& decoder, std::span<const int32_t> text, Sequence& state) {
  std::vector<Row> rows;
  for (int32_t token : text) rows.push_back(*decoder.forward_token(token, state.length(), state));
  return rows;
}

TEST(Entry, FromGgufWithExpertCacheGivesTheSameBitsAndCounts) {
  const auto text = tokens(50);
  const std::string path = testing::tiny_path("gpt-oss-mxfp4");
  auto resident = open("gpt-oss-mxfp4");
  EXPECT_EQ(resident->expert_store_stats().requests, 0u);
  Sequence a = resident->new_state();
  const auto want = one_by_one(*resident, text, a);
  for (const uint64_t budget : {uint64_t{0}, resident->model().expert_index().bytes() / 3}) {
    auto streamed = Decoder::from_gguf_with_expert_cache(path, budget, {});
    ASSERT_TRUE(streamed) << streamed.error().message;
    Sequence b = (*streamed)->new_state();
    expect_bits(one_by_one(**streamed, text, b), want);
    const ExpertStore::Stats stats = (*streamed)->expert_store_stats();
    const ModelConfig& config = (*streamed)->model().config();
    EXPECT_EQ(stats.requests, static_cast<uint64_t>(50 * config.n_layers * config.n_used_experts));
    EXPECT_GT(stats.bytes_read, 0u);
    EXPECT_EQ(stats.resident_bytes > 0, budget > 0);
    EXPECT_EQ(stats.pass_throughs > 0, budget == 0);
  }
  auto dense = Decoder::from_gguf_with_expert_cache(testing::tiny_path("llama"), 0, {});
  ASSERT_TRUE(dense) << dense.error().message;
  EXPECT_EQ((*dense)->expert_store_stats().requests, 0u);
}

TEST(Entry, ForwardTokenPagedMatchesForwardTokenBitIdentical) {
  auto decoder = open("llama");
  const auto text = tokens(70);
  Sequence a = decoder->new_state(), b = decoder->new_state();
  for (int32_t token : text) {
    const int64_t at = a.length();
    expect_bits(*decoder->forward_token(token, at, a), *decoder->forward_token_paged(token, at, b));
  }
}

TEST(Entry, ForwardBatchMatchesForwardToken) {
  auto decoder = open("qwen3");
  const auto text = tokens(90);
  Sequence a = decoder->new_state(), b = decoder->new_state();
  expect_bits(*decoder->forward_batch(text, 0, a), one_by_one(*decoder, text, b));
}

TEST(Entry, ForwardBatchWithHiddenGivesBoth) {
  auto decoder = open("gemma3");
  const auto text = tokens(40);
  Sequence a = decoder->new_state(), b = decoder->new_state(), c = decoder->new_state();
  const auto both = decoder->forward_batch_with_hidden(text, 0, a);
  ASSERT_TRUE(both);
  expect_bits(both->logits, *decoder->forward_batch(text, 0, b));
  expect_bits(both->hidden, *decoder->forward_hidden_batch(text, 0, c));
  EXPECT_EQ(both->hidden[0].size(), static_cast<size_t>(decoder->model().config().dim));
}

TEST(Entry, ForwardBatchLastIsTheLastRow) {
  auto decoder = open("qwen2");
  const auto text = tokens(65);
  Sequence a = decoder->new_state(), b = decoder->new_state(), c = decoder->new_state(), d = decoder->new_state();
  const auto all = *decoder->forward_batch(text, 0, a);
  expect_bits(*decoder->forward_batch_last(text, 0, b), all.back());
  expect_bits(*decoder->forward_batch_last_paged(text, 0, c), all.back());
  expect_bits(*decoder->forward_batch_last_host_kv(text, 0, d), all.back());
  // What was stored is the same too: all go on alike.
  const auto next = *decoder->forward_token(5, 65, a);
  for (Sequence* s : {&b, &c, &d}) expect_bits(*decoder->forward_token(5, 65, *s), next);
}

TEST(Entry, ForwardHiddenBatchThenHead) {
  auto decoder = open("llama");
  const auto text = tokens(20);
  Sequence a = decoder->new_state(), b = decoder->new_state();
  const auto hidden = *decoder->forward_hidden_batch(text, 0, a);
  EXPECT_EQ(hidden.size(), text.size());
  // The rows do not depend on how the text was cut.
  std::vector<Row> pieces;
  for (size_t at = 0; at < text.size(); at += 7) {
    const auto part = std::span(text).subspan(at, std::min<size_t>(7, text.size() - at));
    const auto rows = decoder->forward_hidden_batch(part, static_cast<int64_t>(at), b);
    ASSERT_TRUE(rows);
    pieces.insert(pieces.end(), rows->begin(), rows->end());
  }
  expect_bits(hidden, pieces);
}

TEST(Entry, ForwardMultiSeqIsEachSequenceAlone) {
  auto decoder = open("gemma2-d256", {.threads = 2});
  constexpr size_t kSequences = 8;
  std::vector<Sequence> together, apart;
  std::vector<int32_t> next;
  std::vector<int64_t> positions;
  for (size_t s = 0; s < kSequences; ++s) {
    const auto text = tokens(1 + 19 * s);  // every sequence at a position of its own
    together.push_back(decoder->new_state());
    apart.push_back(decoder->new_state());
    ASSERT_TRUE(decoder->forward_batch_last(text, 0, together[s]));
    ASSERT_TRUE(decoder->forward_batch_last(text, 0, apart[s]));
    next.push_back(static_cast<int32_t>(s));
    positions.push_back(together[s].length());
  }
  const auto rows = decoder->forward_multi_seq(next, positions, together);
  ASSERT_TRUE(rows) << rows.error().message;
  for (size_t s = 0; s < kSequences; ++s)
    expect_bits((*rows)[s], *decoder->forward_token(next[s], positions[s], apart[s]));
  for (int64_t& p : positions) ++p;
  EXPECT_TRUE(decoder->forward_multi_seq_kv(next, positions, together));
  EXPECT_FALSE(decoder->forward_multi_seq(next, std::span(positions).first(3), together));
}

TEST(Entry, EmptyBatchGivesEmptyOutputs) {
  auto decoder = open("llama");
  Sequence state = decoder->new_state();
  EXPECT_TRUE(decoder->forward_batch({}, 0, state)->empty());
  EXPECT_TRUE(decoder->forward_hidden_batch({}, 0, state)->empty());
  EXPECT_TRUE(decoder->forward_multi_seq({}, {}, {})->empty());
  EXPECT_EQ(decoder->forward_batch_last({}, 0, state).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(state.length(), 0);
}

TEST(Entry, SpanStartsWhereItsSequenceEnds) {
  auto decoder = open("llama");
  Sequence state = decoder->new_state();
  const auto text = tokens(3);
  EXPECT_EQ(decoder->forward_batch(text, 1, state).error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(decoder->forward_batch(text, 0, state));
  EXPECT_EQ(decoder->forward_batch(text, 0, state).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(decoder->forward_token(100000, 3, state).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(decoder->forward_token(-1, 3, state).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(state.length(), 3);
}

TEST(Entry, PoolTooSmallIsRefusedBeforeAnyLayer) {
  auto decoder = open("llama", {.positions = 128});
  Sequence state = decoder->new_state();
  const auto text = tokens(100);
  ASSERT_TRUE(decoder->forward_batch_last(text, 0, state));
  const auto refused = decoder->forward_batch_last(text, 100, state);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
  EXPECT_NE(refused.error().message.find("wants 2"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().message.find("0 free"), std::string::npos) << refused.error().message;
  // Nothing was written: the sequence goes on as one that was never refused.
  auto other = open("llama");
  Sequence untouched = other->new_state();
  ASSERT_TRUE(other->forward_batch_last(text, 0, untouched));
  expect_bits(*decoder->forward_token(7, 100, state), *other->forward_token(7, 100, untouched));
}

TEST(Entry, OnePoolEntryPerForwardForEveryArchitecture) {
  for (const Arch* arch : all_archs()) {
    auto decoder = open(std::string(arch->name), {.threads = 2});
    ASSERT_EQ(decoder->model().config().arch->name, arch->name);
    Sequence state = decoder->new_state();
    const auto text = tokens(130);
    const uint64_t before = decoder->pool().entries();
    if (!decoder->model().config().causal) {
      const std::vector<int32_t> short_text(text.size(), 7);  // Of a small vocabulary.
      ASSERT_TRUE(decoder->forward_hidden_batch(short_text, 0, state));
      EXPECT_EQ(decoder->pool().entries(), before + 1) << arch->name;
      continue;
    }
    ASSERT_TRUE(decoder->forward_batch(text, 0, state));
    EXPECT_EQ(decoder->pool().entries(), before + 1) << arch->name;
    ASSERT_TRUE(decoder->forward_token(3, 130, state));
    EXPECT_EQ(decoder->pool().entries(), before + 2) << arch->name;
  }
}

TEST(Entry, APositionThatTheModelDoesNotKnowIsRefused) {
  auto decoder = open("gpt2");  // with a table of 200
  Sequence state = decoder->new_state();
  const auto text = tokens(200);
  ASSERT_TRUE(decoder->forward_batch(text, 0, state));
  const auto beyond = decoder->forward_token(3, 200, state);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(beyond.error().message.find("ends at position 201, the model knows 200"), std::string::npos)
      << beyond.error().message;
}

TEST(Entry, NewRandomSmallIsReproducible) {
  for (const Arch* arch : all_archs()) {
    const ModelConfig config = open(std::string(arch->name))->model().config();
    const auto make = [&](uint64_t seed) { return std::move(*Decoder::new_random_small(config, 2, 77, seed, {})); };
    auto a = make(1), b = make(1), c = make(2);
    EXPECT_EQ(a->vocab_size(), 77);
    EXPECT_EQ(a->model().config().n_layers, 2);
    Sequence sa = a->new_state(), sb = b->new_state(), sc = c->new_state();
    const std::vector<int32_t> text{1, 2, 76};
    const auto last = [&](Decoder& d, Sequence& s) {
      return config.causal ? *d.forward_batch_last(text, 0, s) : d.forward_hidden_batch(text, 0, s)->back();
    };
    const auto row = last(*a, sa);
    expect_bits(row, last(*b, sb));
    EXPECT_NE(std::memcmp(row.data(), last(*c, sc).data(), row.size() * sizeof(float)), 0) << arch->name;
  }
  EXPECT_FALSE(Decoder::new_random_small({}, 2, 77, 1, {}));
}

TEST(Entry, ProbeKernelsNamesEveryMatrix) {
  auto decoder = open("type-q4_k");
  const std::string probe = decoder->probe_kernels();
  for (const char* name : {"blk.0.attn_q.weight", "blk.1.ffn_down.weight", "output.weight", "Q4_K"}) {
    EXPECT_NE(probe.find(name), std::string::npos) << name;
  }
}

TEST(EntryDeathTest, LookUpAfterSealingAborts) {
  auto decoder = open("llama");
  KernelFinder finder(*decoder->model().plan().table);
  const Matrix& w = decoder->model().weights().layers[0].wq;
  ASSERT_TRUE(finder.find(w, Buf::kBranch, 0));
  finder.seal();
  EXPECT_DEATH(static_cast<void>(finder.find(w, Buf::kBranch, 0)), "sealed");
}

TEST(Entry, MemoryLimitIsHeld) {
  const auto refused = Decoder::from_gguf(testing::tiny_path("llama"), {.memory_bytes = 1u << 20});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace stoker::model
