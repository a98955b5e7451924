// What matmul_test does not reach: rows so long that the one-row kernels cannot keep their sums in scratch.
#include <gtest/gtest.h>

#include "base/cpu.h"
#include "tests/kernels/matmul_data.h"

namespace stoker::testing {
namespace {

class LongRows : public ::testing::TestWithParam<FileType> {};

TEST_P(LongRows, OneRowIsTheRowOfMany) {
  const FileType& type = GetParam();
  const size_t id = static_cast<size_t>(type.type);
  // One line of sums per block fills the scratch; a few more.
  const int64_t k = (kernels::kMatmulScratchBytes / 64 + 3) * type.weights;
  const std::vector<std::byte> rows = random_rows(type, 1, k, Fill::kRandom, 5);
  const Lines packed = pack_rows(kernels::scalar_table(), type, rows, 1, k);
  const RandomActivations x(1, k, Fill::kRandom, 6);
  for (const kernels::Table* table : kernels::runnable_tables()) {
    Lines scratch(kernels::kMatmulScratchBytes);
    Lines y(16 * sizeof(float));
    table->matmul[id].one({.w = packed.data(),
                           .group_bytes = kernels::group_bytes(type.type, k),
                           .k = k,
                           .group_begin = 0,
                           .group_end = 1,
                           .x = &x.get(),
                           .row_begin = 0,
                           .row_end = 1,
                           .y = y.as<float>(),
                           .y_stride = 16,
                           .scratch = scratch.data()});
    EXPECT_TRUE(scratch.guard_intact() && y.guard_intact());
    EXPECT_TRUE(same_bits(y.as<float>()[0], reference_dot(type, rows.data(), x.get(), 0))) << isa_name(table->isa);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LongRows,
                         ::testing::Values(kFileTypes[3], kFileTypes[7], kFileTypes[9], kFileTypes[14]),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace stoker::testing
