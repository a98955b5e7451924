// States of a fixed size: what a sequence can be cut to, snapshots, and calls that fail. Every row of logits is
// compared with that of a sequence which read the text at once.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/model/golden.h"

namespace stoker::model {
namespace {

using namespace testing;
using Rows = std::vector<std::vector<float>>;

constexpr int64_t kLength = 60, kStates = 20;

std::vector<int32_t> text(int64_t n_vocab, int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(static_cast<size_t>(n));
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % static_cast<uint32_t>(n_vocab));
  return tokens;
}

class Recurrent : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const testing::Setup setup{.isa = available_isas().back(),
                               .threads = 2,
                               .kv = kernels::KvType::kF16,
                               .positions = 64 * 64,
                               .chunk_rows = 5,
                               .scatter_seed = 3,
                               .n_states = kStates};
    loaded_ = std::make_unique<Loaded>(tiny_path(GetParam()), setup);
    tokens_ = text(loaded_->n_vocab(), kLength, 1);
    want_ = all_logits(*loaded_, tokens_, 64);
    ASSERT_FALSE(loaded_->kv->layout().traits().truncates);
  }

  /// Reads the text from where the sequence ends up to `end`; each row must be what it was.
  void read(Sequence& sequence, int64_t end) {
    while (sequence.length() < end) {
      const int64_t at = sequence.length(), n = std::min<int64_t>(end - at, 7);
      const Span span{.sequence = &sequence,
                      .tokens = std::span(tokens_).subspan(static_cast<size_t>(at), static_cast<size_t>(n)),
                      .position = at,
                      .logits = {0, n}};
      const auto outputs = loaded_->runner->forward({&span, 1});
      ASSERT_TRUE(outputs && outputs->failures.empty()) << (outputs ? "" : outputs.error().message);
      for (int64_t i = 0; i < n; ++i) {
        const std::vector<float>& want = want_[static_cast<size_t>(at + i)];
        ASSERT_EQ(std::memcmp(outputs->logits_row(i), want.data(), want.size() * sizeof(float)), 0) << at + i;
      }
    }
  }
  void read_other(Sequence& sequence, int64_t n) {
    const auto tokens = text(loaded_->n_vocab(), n, 99);
    const Span span{.sequence = &sequence, .tokens = tokens, .position = sequence.length()};
    ASSERT_TRUE(loaded_->runner->forward({&span, 1}));
  }

  std::unique_ptr<Loaded> loaded_;
  std::vector<int32_t> tokens_;
  Rows want_;
};

TEST_P(Recurrent, CutAtEachPosition) {
  Sequence sequence(*loaded_->kv);
  for (const int64_t checkpoint : {13, 40, 49}) {
    read(sequence, checkpoint);
    sequence.checkpoint();
  }
  read(sequence, kLength);
  for (int64_t cut = kLength; cut-- > 0;) {
    const int64_t point = sequence.cut_point(cut);
    EXPECT_TRUE(point == 0 || point == 13 || point == 40 || point >= 49 || cut - point <= 10) << cut;
    if (point != cut) {
      const Status refused = sequence.truncate(cut);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
      EXPECT_NE(refused.error().message.find("at " + std::to_string(point)), std::string::npos)
          << refused.error().message;
    }
    ASSERT_TRUE(sequence.truncate(point));
    read(sequence, std::min(cut + 2, kLength));
  }
  sequence.clear();
  EXPECT_EQ(loaded_->kv->states()->n_free(), kStates);
}

TEST_P(Recurrent, SnapshotsAreRestored) {
  Sequence sequence(*loaded_->kv);
  std::vector<Sequence> snapshots;
  for (const int64_t length : {1, 2, 3, 30, 55}) {
    read(sequence, length);
    snapshots.push_back(sequence.fork());
  }
  read_other(sequence, 20);
  for (size_t i = snapshots.size(); i-- > 0;) {
    Sequence restored = snapshots[i].fork();
    read(restored, kLength);
    sequence = snapshots[i].fork();
    read_other(sequence, 3);
    read(snapshots[i], kLength);
  }
}

TEST_P(Recurrent, TheLastCallCanBeTakenBack) {
  Sequence sequence(*loaded_->kv);
  read(sequence, 28);
  read_other(sequence, 4);  // drafts that turn out wrong
  EXPECT_EQ(sequence.cut_point(31), 28);
  ASSERT_TRUE(sequence.truncate(28));
  read(sequence, 35);
}

TEST_P(Recurrent, FailedAndCancelledCallsChangeNothing) {
  Sequence sequence(*loaded_->kv);
  read(sequence, 30);
  const std::atomic<bool> cancel = true;
  const Control control{.cancel = &cancel};
  const Span span{.sequence = &sequence, .tokens = std::span(tokens_).first(9), .position = 30};
  const auto outputs = loaded_->runner->forward({&span, 1}, nullptr, &control);
  if (outputs) {  // there was no place to cancel it at
    ASSERT_TRUE(sequence.truncate(30));
  } else {
    EXPECT_EQ(outputs.error().code, ErrorCode::kCancelled);
  }
  read(sequence, kLength);
}

TEST_P(Recurrent, TooFewPlacesAreRefusedByName) {
  std::vector<Sequence> sequences;
  std::vector<Span> batch;
  for (int64_t i = 0; i <= kStates; ++i) sequences.emplace_back(*loaded_->kv);
  for (Sequence& s : sequences) batch.push_back({.sequence = &s, .tokens = std::span(tokens_).first(3)});
  const auto outputs = loaded_->runner->forward(batch);
  ASSERT_FALSE(outputs);
  EXPECT_EQ(outputs.error().code, ErrorCode::kOverloaded);
  EXPECT_NE(outputs.error().message.find("of 20 places for recurrent states 20 are free, this batch wants 21"),
            std::string::npos)
      << outputs.error().message;
  EXPECT_TRUE(loaded_->runner->forward(std::span(batch).first(kStates)));
  const Status more = sequences[0].reserve(1);
  ASSERT_FALSE(more);
  EXPECT_NE(more.error().message.find("recurrent states"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Tiny, Recurrent,
                         ::testing::Values("qwen3next-joined", "qwen35-layers", "kimi-linear-joined", "kimi-k3",
                                           "nemotron_h_moe", "falcon-h1", "granitehybrid", "lfm2", "deepseek4"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// Rows of 128 positions, cut off while they are made, when they are complete, and before.
TEST(CompressedRows, CutInsideAndBehindThem) {
  const testing::Setup setup{.isa = available_isas().back(), .threads = 2, .kv = kernels::KvType::kF16, .n_states = 12};
  Loaded loaded(tiny_path("deepseek4"), setup);
  const auto tokens = text(loaded.n_vocab(), 270, 4);
  const Rows want = all_logits(loaded, tokens, 64);
  Sequence sequence(*loaded.kv);
  const auto read = [&](int64_t end, int64_t most) {
    while (sequence.length() < end) {
      const int64_t at = sequence.length(), n = std::min(end - at, most);
      const Span span{.sequence = &sequence,
                      .tokens = std::span(tokens).subspan(static_cast<size_t>(at), static_cast<size_t>(n)),
                      .position = at,
                      .logits = {n - 1, n}};
      const auto outputs = loaded.runner->forward({&span, 1});
      ASSERT_TRUE(outputs && outputs->failures.empty());
      const std::vector<float>& row = want[static_cast<size_t>(at + n - 1)];
      ASSERT_EQ(std::memcmp(outputs->logits_row(0), row.data(), row.size() * sizeof(float)), 0) << at + n - 1;
    }
  };
  for (const int64_t length : {100, 127, 128, 131, 200, 255, 256}) {
    read(length, 50);
    sequence.checkpoint();
  }
  const Sequence snapshot = sequence.fork();
  read(270, 50);
  for (const int64_t cut : {256, 255, 200, 131, 128, 127, 100}) {
    ASSERT_EQ(sequence.cut_point(cut + 1), cut == 127 || cut == 255 ? cut + 1 : cut);
    ASSERT_TRUE(sequence.truncate(cut));
    read(cut + 5, 2);
    ASSERT_TRUE(sequence.truncate(cut));
    read(270, 64);
    ASSERT_TRUE(sequence.truncate(cut));
  }
  sequence = snapshot.fork();
  read(270, 3);
}

TEST(CompressedRows, MemoryIsThatOfTheShapes) {
  const Loaded loaded(tiny_path("deepseek4"));  // window 16, layers of 0, 4, 128, 4; rows of 48, keys of 64, all f32
  const KvLayout& layout = loaded.model->plan().kv;
  EXPECT_EQ(layout.page_bytes, 2 * 16 * (48 + 64) * 4 + 48 * 4);
  const int64_t windows = 4 * 2 * 64 * 48 * 4, sums = 2 * 2 * 3 * (48 + 64) * 4 + 3 * 48 * 4;
  EXPECT_EQ(layout.state_bytes, windows + sums);
  EXPECT_EQ(layout.traits().bytes_per_checkpoint, layout.state_bytes);
  EXPECT_FALSE(layout.traits().truncates);

  // V4 Flash at 128k positions: 21 layers of 4, 20 of 128, two without rows, f16.
  ModelConfig flash = loaded.model->config();
  flash.n_layers = 43;
  flash.k_dim = flash.v_dim = 512, flash.index_dim = 128, flash.window = 128;
  flash.ratios.assign(43, 0), flash.index_layers.assign(43, false), flash.sliding.assign(43, false);
  for (size_t layer = 2; layer < 43; ++layer) {
    flash.ratios[layer] = layer % 2 == 0 ? 4 : 128;
    flash.index_layers[layer] = layer % 2 == 0;
  }
  const StateTraits traits = KvLayout::of(flash, kernels::KvType::kF16).traits();
  const double per_position = 21 * (512 + 128) * 2 / 4.0 + 20 * 512 * 2 / 128.0;
  EXPECT_NEAR(static_cast<double>(traits.bytes_per_position) / per_position, 1, 0.03);
  EXPECT_LT(traits.bytes_per_checkpoint, 9 << 20);
}

TEST(RecurrentMemory, IsThatOfTheShapes) {
  const Loaded loaded(tiny_path("qwen35"));
  const KvLayout& layout = loaded.model->plan().kv;
  // Three of four layers: three rows of 2 x 2 x 16 + 6 x 16 channels, and 6 heads of 16 x 16.
  const int64_t each = 3 * (3 * (4 * 16 + 96) + 6 * 16 * 16) * 4;
  EXPECT_EQ(layout.state_bytes, each);
  EXPECT_EQ(layout.traits().bytes_per_sequence, 2 * each);
  EXPECT_EQ(layout.traits().bytes_per_checkpoint, each);
  // One layer with 2 heads of 32, K and V in f32.
  EXPECT_EQ(layout.traits().bytes_per_position, 2 * 2 * 32 * 4);
}

}  // namespace
}  // namespace stoker::model
