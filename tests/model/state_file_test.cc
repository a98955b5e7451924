// What is written is read back, and whatever else comes is refused by name: no byte of it is believed before.
#include "model/state/state_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "base/str_cat.h"
#include "base/xxh3.h"
#include "tests/base/temp_dir.h"

namespace stoker::model {
namespace {

constexpr int64_t kPageBytes = 192, kStateBytes = 128, kPages = 3;
constexpr size_t kNTokens = 150, kHeader = 136, kChecksumAt = 128;
// Where the fields of the header lie.
constexpr size_t kVersionAt = 8, kTypeAt = 12, kPageBytesAt = 32, kTokensAt = 48, kLengthAt = 56;

KvLayout layout_of(int64_t state_bytes = kStateBytes) {
  KvLayout layout;
  layout.page_bytes = kPageBytes;
  layout.state_bytes = state_bytes;
  layout.layers = {{.kind = StateKind::kHeads, .n_heads = 1, .k_tile_bytes = 96, .v_tile_bytes = 96},
                   {.kind = StateKind::kRecurrent, .state_offset = 64}};
  return layout;
}

std::unique_ptr<KvPool> make_pool(Ledger& ledger, const KvLayout& layout, uint64_t seed = 0, int64_t pages = kPages) {
  auto pool = KvPool::create(ledger, layout, {.n_pages = pages, .scatter_seed = seed});
  if (!pool) ADD_FAILURE() << pool.error().message;
  return std::move(*pool);
}

void fill(std::byte* bytes, int64_t n, int seed) {
  for (int64_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>((i * 7 + seed * 31 + i / 50) & 255);
}

/// Reserves and "writes" positions, as a forward pass does.
void append(Sequence& sequence, int64_t n) {
  const auto status = sequence.reserve(n);
  ASSERT_TRUE(status) << status.error().message;
  for (int64_t t = 0; t * 64 < sequence.length() + n; ++t) fill(sequence.tile(t), kPageBytes, static_cast<int>(t));
  if (sequence.next_state()) fill(sequence.next_state(), kStateBytes, 9);
  sequence.advance(n);
}

std::vector<int32_t> some_tokens() {
  std::vector<int32_t> tokens(kNTokens);
  for (size_t i = 0; i < kNTokens; ++i) tokens[i] = static_cast<int32_t>(i * 37 % 500);
  return tokens;
}

const StateOwner kOwner{.identity = 0x123456789abcdef0, .name = "the model", .n_vocab = 500};

class StateFiles : public ::testing::Test {
 protected:
  std::string path(const std::string& name) { return folder_ / name; }
  std::string read(const std::string& name) {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string put(const std::string& bytes) {
    std::ofstream(path("changed"), std::ios::binary) << bytes;
    return path("changed");
  }
  /// A whole file with `length` positions.
  std::string saved(const KvLayout& layout, int64_t length = 130) {
    auto pool = make_pool(ledger_, layout);
    Sequence sequence(*pool);
    append(sequence, length);
    auto file = OutputFile::create(path("state"));
    EXPECT_TRUE(file);
    EXPECT_TRUE(write_state(sequence, some_tokens(), kOwner, *file));
    EXPECT_TRUE(file->commit());
    return read("state");
  }
  /// The refusal of these bytes, by whichever step; empty when there is none.
  std::string refusal(const std::string& bytes) { return refusal_of(put(bytes)); }
  std::string refusal_of(const std::string& changed, ErrorCode* code = nullptr) {
    const KvLayout layout = layout_of();
    const auto file = StateFile::open(changed, layout, kOwner);
    if (!file) {
      if (code) *code = file.error().code;
      return file.error().message;
    }
    auto pool = make_pool(ledger_, layout, 3);
    const auto sequence = file->restore(*pool, 200);
    if (sequence) return {};
    EXPECT_EQ(pool->n_free(), pool->n_pages());
    EXPECT_EQ(pool->states()->n_free(), pool->states()->n());
    if (code) *code = sequence.error().code;
    return sequence.error().message;
  }
  /// With a checksum that says nothing is wrong.
  template <class T>
  std::string forged(std::string bytes, size_t at, T value, size_t n_tokens = kNTokens) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
    Xxh3 hash;
    hash.add(std::as_bytes(std::span(bytes).first(kChecksumAt)));
    hash.add(std::as_bytes(std::span(bytes).subspan(kHeader, n_tokens * sizeof(int32_t))));
    const uint64_t sum = hash.value();
    std::memcpy(bytes.data() + kChecksumAt, &sum, sizeof sum);
    return bytes;
  }

  test::TempDir folder_;
  Ledger ledger_;
};

TEST_F(StateFiles, WhatIsWrittenIsReadBack) {
  for (const int64_t state_bytes : {int64_t{0}, kStateBytes}) {
    const KvLayout layout = layout_of(state_bytes);
    saved(layout);
    const auto file = StateFile::open(path("state"), layout, kOwner);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->tokens(), some_tokens());
    EXPECT_EQ(file->length(), 130);
    auto pool = make_pool(ledger_, layout, 7);
    const auto sequence = file->restore(*pool, 200);
    ASSERT_TRUE(sequence) << sequence.error().message;
    EXPECT_EQ(sequence->length(), 130);
    std::vector<std::byte> want(kPageBytes);
    for (int t = 0; t < kPages; ++t) {
      fill(want.data(), kPageBytes, t);
      EXPECT_EQ(std::memcmp(sequence->tile(t), want.data(), want.size()), 0) << t;
    }
    if (state_bytes == 0) continue;
    fill(want.data(), kStateBytes, 9);
    EXPECT_EQ(std::memcmp(sequence->state(), want.data(), kStateBytes), 0);
    EXPECT_EQ(sequence->cut_point(129), 0);  // its state before is not known
  }
}

TEST_F(StateFiles, NothingIsReadYet) {
  auto pool = make_pool(ledger_, layout_of());
  const Sequence sequence(*pool);
  auto file = OutputFile::create(path("state"));
  ASSERT_TRUE(file && write_state(sequence, some_tokens(), kOwner, *file) && file->commit());
  const auto again = StateFile::open(path("state"), layout_of(), kOwner);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->restore(*pool, 10)->length(), 0);
}

TEST_F(StateFiles, EveryBitThatIsTurned) {
  const std::string whole = saved(layout_of());
  ASSERT_EQ(whole.size(), kHeader + kNTokens * 4 + kPages * kPageBytes + kStateBytes + 8);
  ASSERT_EQ(refusal(whole), "");
  std::fstream file(put(whole), std::ios::binary | std::ios::in | std::ios::out);
  const auto set = [&](size_t at, int byte) {
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte)).flush();
  };
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      set(at, whole[at] ^ (1 << bit));
      ASSERT_NE(refusal_of(path("changed")), "") << "byte " << at << ", bit " << bit;
    }
    set(at, whole[at]);
  }
  EXPECT_EQ(refusal_of(path("changed")), "");
}

TEST_F(StateFiles, EveryPlaceThatItIsCutAt) {
  const std::string whole = saved(layout_of());
  put(whole);
  for (size_t size = whole.size(); size-- > 0;) {
    ErrorCode code{};
    std::filesystem::resize_file(path("changed"), size);
    ASSERT_NE(refusal_of(path("changed"), &code), "") << size;
    ASSERT_EQ(code, ErrorCode::kCorrupt) << size;
  }
  EXPECT_NE(refusal(whole + "x"), "");
  EXPECT_NE(refusal("A letter, and no state of anything.\n" + whole), "");
}

TEST_F(StateFiles, NumbersThatCannotBe) {
  const std::string whole = saved(layout_of());
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const int64_t value : {int64_t{0}, int64_t{-1}, int64_t{129}, int64_t{151}, most / 4, most - 63, most}) {
    EXPECT_NE(refusal(forged(whole, kTokensAt, value)), "") << value;
  }
  for (const int64_t value : {int64_t{-1}, int64_t{150}, int64_t{128}, most - 62, most}) {
    EXPECT_NE(refusal(forged(whole, kLengthAt, value)), "") << value;
  }
  for (const int64_t value : {int64_t{-1}, int64_t{0}, most, most / 3}) {
    EXPECT_NE(refusal(forged(whole, kPageBytesAt, value)), "") << value;
  }
  EXPECT_NE(refusal(forged(whole, kHeader + 40, int32_t{500})).find("token 500 is outside the vocabulary of 500"),
            std::string::npos);
  EXPECT_NE(refusal(forged(whole, kHeader, int32_t{-1})).find("token -1"), std::string::npos);
  EXPECT_NE(refusal(forged(whole, kTypeAt, uint32_t{99})).find("an unknown type"), std::string::npos);
  EXPECT_NE(refusal(forged(whole, kVersionAt, uint32_t{2})).find("version 2, this version reads 1"), std::string::npos);
}

TEST_F(StateFiles, OfSomebodyElse) {
  saved(layout_of());
  const auto refused = [&](const KvLayout& layout, const StateOwner& owner) {
    const auto file = StateFile::open(path("state"), layout, owner);
    EXPECT_FALSE(file);
    if (file) return std::string();
    EXPECT_EQ(file.error().code, ErrorCode::kInvalidArgument);
    return file.error().message;
  };
  StateOwner owner = kOwner;
  owner.identity ^= 1;
  owner.name = "a model";
  EXPECT_NE(refused(layout_of(), owner).find("another model, 'the model', not of 'a model'"), std::string::npos);
  KvLayout layout = layout_of();
  layout.type = kernels::KvType::kQ8_0;
  EXPECT_NE(refused(layout, kOwner).find("keys and values in f16, this run in q8_0"), std::string::npos);
  layout = layout_of();
  layout.layers[1].state_offset = 0;
  EXPECT_NE(refused(layout, kOwner).find("another layout"), std::string::npos);
  layout = layout_of();
  layout.state_bytes = 64;
  EXPECT_NE(refused(layout, kOwner).find("another layout"), std::string::npos);
}

TEST_F(StateFiles, TooSmallAPool) {
  saved(layout_of());
  const auto file = StateFile::open(path("state"), layout_of(), kOwner);
  ASSERT_TRUE(file);
  auto pool = make_pool(ledger_, layout_of(), 0, 2);
  const auto sequence = file->restore(*pool, 200);
  ASSERT_FALSE(sequence);
  EXPECT_EQ(sequence.error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(pool->n_free(), 2);
}

}  // namespace
}  // namespace stoker::model
