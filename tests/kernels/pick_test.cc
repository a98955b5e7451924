#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/table.h"
#include "tests/kernels/reference_dot.h"

namespace stoker::testing {
namespace {

using kernels::Table;

TEST(Pick, OneTablePerSetOfThisMachineScalarFirst) {
  const std::vector<const Table*> tables = kernels::runnable_tables();
  const std::vector<Isa>& isas = available_isas();
  ASSERT_EQ(tables.size(), isas.size());
  EXPECT_EQ(tables.front(), &kernels::scalar_table());
  EXPECT_EQ(kernels::scalar_table().isa, Isa::kScalar);
  for (Isa isa : isas) {
    const auto table = kernels::table_for(isa);
    ASSERT_TRUE(table) << isa_name(isa);
    EXPECT_EQ((*table)->isa, isa);
    EXPECT_EQ(*table, *kernels::table_for(isa)) << "made anew";
  }
}

TEST(Pick, RefusesWhatThisMachineLacks) {
  int refused = 0;
  for (Isa isa : {Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAmx, Isa::kNeon, Isa::kNeonI8mm}) {
    if (std::find(available_isas().begin(), available_isas().end(), isa) != available_isas().end()) continue;
    const auto table = kernels::table_for(isa);
    ASSERT_FALSE(table) << isa_name(isa);
    EXPECT_EQ(table.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(table.error().message.find(isa_name(isa)), std::string::npos) << table.error().message;
    ++refused;
  }
  EXPECT_GT(refused, 0);  // No machine has both AVX and NEON.
}

TEST(Pick, NoEntryIsMissing) {
  for (const Table* table : kernels::runnable_tables()) {
    SCOPED_TRACE(isa_name(table->isa));
    for (const FileType& type : kFileTypes) {
      const auto id = static_cast<size_t>(type.type);
      EXPECT_TRUE(table->matmul[id].one && table->matmul[id].few && table->matmul[id].many) << type.name;
      EXPECT_TRUE(table->pack[id] && table->row[id]) << type.name;
    }
    EXPECT_TRUE(table->quantize_a256 && table->quantize_a32);
    EXPECT_TRUE(table->rms_norm && table->add && table->scale && table->silu_mul && table->gelu_mul);
    EXPECT_TRUE(table->softcap && table->rope_interleaved && table->rope_halves);
    EXPECT_TRUE(table->all_finite && table->argmax);
    EXPECT_TRUE(table->attention && table->attention_merge && table->store_k && table->store_v);
  }
}

TEST(Pick, TypesWithoutKernelsHaveNone) {
  for (const Table* table : kernels::runnable_tables()) {
    for (gguf::TensorType type : {gguf::TensorType::kIQ2XXS, gguf::TensorType::kI8, gguf::TensorType::kF64}) {
      EXPECT_EQ(table->matmul[static_cast<size_t>(type)].one, nullptr);
      EXPECT_EQ(table->pack[static_cast<size_t>(type)], nullptr);
    }
  }
}

// Where matrix products come from, as `stoker inspect --plan` tells it.
TEST(Pick, OriginIsTold) {
  const Table& scalar = kernels::scalar_table();
  for (const Table* table : kernels::runnable_tables()) {
    const bool wide = table->isa == Isa::kAvx512 || table->isa == Isa::kAmx;
    const bool x86 = wide || table->isa == Isa::kAvx2 || table->isa == Isa::kAvxVnni;
    const bool i8mm = table->isa == Isa::kNeonI8mm, arm = i8mm || table->isa == Isa::kNeon;
    for (const FileType& type : kFileTypes) {
      const auto id = static_cast<size_t>(type.type);
      const bool integers = kernels::activation_form(type.type) != kernels::ActForm::kF32;
      const Isa want = wide               ? Isa::kAvx512
                       : x86              ? Isa::kAvx2
                       : i8mm && integers ? Isa::kNeonI8mm
                       : arm              ? Isa::kNeon
                                          : Isa::kScalar;
      EXPECT_EQ(table->matmul_isa[id], want) << isa_name(table->isa) << " " << type.name;
      EXPECT_EQ(table->matmul[id].many == scalar.matmul[id].many, want == Isa::kScalar)
          << isa_name(table->isa) << " " << type.name;
    }
  }
}

}  // namespace
}  // namespace stoker::testing
