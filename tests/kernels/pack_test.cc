#include <gtest/gtest.h>

#include "base/cpu.h"
#include "quant/all.h"
#include "tests/kernels/matmul_data.h"

namespace stoker::testing {
namespace {

using kernels::Table;

class Pack : public ::testing::TestWithParam<FileType> {
 protected:
  const FileType& type() const { return GetParam(); }
  size_t id() const { return static_cast<size_t>(type().type); }
};

// The decoder of src/quant for one row of the file.
std::vector<float> decode(const FileType& type, const std::byte* row, int64_t k) {
  std::vector<float> out(static_cast<size_t>(k));
  EXPECT_TRUE(quant::AllQuants::any([&]<class Type>() {
    if (Type::kType != type.type) return false;
    quant::decode_row<Type>(row, k, out.data());
    return true;
  }));
  return out;
}

TEST_P(Pack, RowsComeBackAsTheDecoderGivesThem) {
  for (const Table* table : kernels::runnable_tables()) {
    for (int64_t k : columns_of(type())) {
      for (int64_t n_rows : {1, 15, 16, 33}) {
        const std::vector<std::byte> rows = random_rows(type(), n_rows, k, Fill::kMixed, 7);
        const Lines packed = pack_rows(*table, type(), rows, n_rows, k);
        ASSERT_TRUE(packed.guard_intact());
        for (int64_t row = 0; row < (n_rows + 15) / 16 * 16; ++row) {
          Lines out(static_cast<size_t>(k) * sizeof(float));
          table->row[id()]({packed.data(), kernels::group_bytes(type().type, k), k, row, out.as<float>()});
          ASSERT_TRUE(out.guard_intact());
          std::vector<float> want(static_cast<size_t>(k), 0.0f);
          if (row < n_rows) want = decode(type(), rows.data() + row * row_bytes(type(), k), k);
          for (int64_t i = 0; i < k; ++i) {
            const float got = out.as<float>()[i];
            // A missing row is zero; which zero, nobody asks.
            ASSERT_TRUE(same_bits(got, want[static_cast<size_t>(i)]) || (row >= n_rows && got == 0.0f))
                << isa_name(table->isa) << " k " << k << " row " << row << " weight " << i;
          }
        }
      }
    }
  }
}

TEST_P(Pack, EveryTablePacksTheSameBytes) {
  for (const Table* table : kernels::runnable_tables()) {
    for (int64_t k : columns_of(type())) {
      for (int64_t n_rows : {1, 2, 15, 16, 17}) {
        const std::vector<std::byte> rows = random_rows(type(), n_rows, k, Fill::kMixed, 8);
        const Lines want = pack_rows(kernels::scalar_table(), type(), rows, n_rows, k);
        const Lines got = pack_rows(*table, type(), rows, n_rows, k);
        ASSERT_EQ(std::memcmp(got.data(), want.data(), want.size()), 0) << isa_name(table->isa) << " k " << k;
      }
    }
  }
}

// The file's rows may lie anywhere and further apart than they are long.
TEST_P(Pack, RowsNeedNoAlignment) {
  const int64_t k = columns_of(type())[1], bytes = row_bytes(type(), k), apart = bytes + 3;
  const std::vector<std::byte> rows = random_rows(type(), 16, k, Fill::kRandom, 9);
  const Lines want = pack_rows(kernels::scalar_table(), type(), rows, 16, k);
  // Exactly as long as needed: a byte read beyond the last row is a byte that sanitizers see.
  std::vector<std::byte> spread(static_cast<size_t>(1 + 15 * apart + bytes));
  for (int64_t row = 0; row < 16; ++row) {
    std::memcpy(spread.data() + 1 + row * apart, rows.data() + row * bytes, static_cast<size_t>(bytes));
  }
  for (const Table* table : kernels::runnable_tables()) {
    Lines group(static_cast<size_t>(kernels::group_bytes(type().type, k)));
    table->pack[id()]({.rows = spread.data() + 1, .row_bytes = apart, .n_rows = 16, .k = k, .group = group.data()});
    EXPECT_EQ(std::memcmp(group.data(), want.data(), want.size()), 0) << isa_name(table->isa);
    EXPECT_TRUE(group.guard_intact());
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Pack, ::testing::ValuesIn(kFileTypes),
                         [](const auto& test) { return std::string(test.param.name); });

// Word w of the 16 rows is line w; the headers of 8 blocks (here also of the last two) come before their lines.
TEST(PackLayout, Q8Lines) {
  const FileType& q8 = kFileTypes[7];
  ASSERT_STREQ(q8.name, "Q8_0");
  constexpr int64_t kBlocks = 10, kRun = 8 * (512 + 32);
  const std::vector<std::byte> rows = random_rows(q8, 16, kBlocks * 32, Fill::kRandom, 3);
  const Lines packed = pack_rows(kernels::scalar_table(), q8, rows, 16, kBlocks * 32);
  ASSERT_EQ(packed.size(), 16u * kBlocks * 34);
  for (int64_t row = 0; row < 16; ++row) {
    for (int64_t block = 0; block < kBlocks; ++block) {
      const std::byte* file = rows.data() + (row * kBlocks + block) * 34;
      const std::byte* headers = packed.data() + block / 8 * kRun;
      const std::byte* lines = headers + (block < 8 ? 8 : 2) * 32 + block % 8 * 512;
      for (int64_t line = 0; line < 8; ++line) {
        EXPECT_EQ(std::memcmp(lines + line * 64 + 4 * row, file + 2 + 4 * line, 4), 0);
      }
      EXPECT_EQ(std::memcmp(headers + (block % 8 * 16 + row) * 2, file, 2), 0);
    }
  }
}

}  // namespace
}  // namespace stoker::testing
