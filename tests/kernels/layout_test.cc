#include <gtest/gtest.h>

#include "kernels/r16.h"
#include "kernels/table.h"
#include "tests/kernels/reference_dot.h"

namespace stoker::testing {
namespace {

using gguf::TensorType;

TEST(Layout, AGroupIsSixteenRowsRoundedUpToALine) {
  for (const FileType& type : kFileTypes) {
    for (int64_t blocks : {1, 2, 3, 9, 90}) {
      const int64_t k = blocks * type.weights, bytes = 16 * row_bytes(type, k);
      EXPECT_EQ(kernels::group_bytes(type.type, k), (bytes + 63) / 64 * 64) << type.name << " " << k;
    }
  }
}

TEST(Layout, RefusesWhatCannotBe) {
  EXPECT_EQ(kernels::group_bytes(TensorType::kQ4K, 128), 0);
  EXPECT_EQ(kernels::group_bytes(TensorType::kQ4K, 257), 0);
  EXPECT_EQ(kernels::group_bytes(TensorType::kQ8_0, 33), 0);
  EXPECT_EQ(kernels::group_bytes(TensorType::kQ8_0, 0), 0);
  EXPECT_EQ(kernels::group_bytes(TensorType::kF32, -1), 0);
  EXPECT_EQ(kernels::group_bytes(TensorType::kIQ2XXS, 256), 0);
  EXPECT_EQ(kernels::group_bytes(TensorType::kI8, 256), 0);
}

TEST(Layout, FormsOfActivations) {
  for (const FileType& type : kFileTypes) {
    const kernels::ActForm want = type.weights == 256  ? kernels::ActForm::kA256
                                  : type.weights == 32 ? kernels::ActForm::kA32
                                                       : kernels::ActForm::kF32;
    EXPECT_EQ(kernels::activation_form(type.type), want) << type.name;
  }
}

}  // namespace
}  // namespace stoker::testing
