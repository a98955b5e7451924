#include <gtest/gtest.h>

#include <algorithm>

#include "base/str_cat.h"
#include "kernels/table.h"
#include "tests/kernels/emulated.h"
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
    EXPECT_TRUE(table->rms_norm && table->add && table->mul && table->scale && table->silu_mul && table->gelu_mul);
    EXPECT_TRUE(table->layer_norm && table->gelu && table->gelu_erf && table->gelu_erf_mul && table->relu_squared &&
                table->xielu);
    EXPECT_TRUE(table->clamped_silu_mul && table->add_scaled);
    EXPECT_TRUE(table->sigmoid && table->sigmoid_mul && table->softplus && table->exp_mul);
    EXPECT_TRUE(table->convolve && table->recur);
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
  std::vector<const Table*> tables = kernels::runnable_tables();
  for (const Table* table : emulated_tables()) tables.push_back(table);
  for (const Table* table : tables) {
    const bool wide = table->isa == Isa::kAvx512 || table->isa == Isa::kAmx;
    const bool x86 = wide || table->isa == Isa::kAvx2 || table->isa == Isa::kAvxVnni;
    const bool i8mm = table->isa == Isa::kNeonI8mm, arm = i8mm || table->isa == Isa::kNeon;
    const Isa floats = wide ? Isa::kAvx512 : x86 ? Isa::kAvx2 : arm ? Isa::kNeon : Isa::kScalar;
    const Isa integers = x86 || arm ? table->isa : Isa::kScalar;
    for (const FileType& type : kFileTypes) {
      const bool is_float = kernels::activation_form(type.type) == kernels::ActForm::kF32;
      EXPECT_EQ(table->matmul_isa[static_cast<size_t>(type.type)], is_float ? floats : integers)
          << isa_name(table->isa) << " " << type.name;
    }
  }
}

// Whether `a` takes its kernels for one row from `b`, and those for few.
bool shares_one(Isa a, Isa b) {
  return (a == Isa::kAmx && b == Isa::kAvx512) || (a == Isa::kNeonI8mm && b == Isa::kNeon);
}
bool shares_few(Isa a, Isa b) { return a == Isa::kNeonI8mm && b == Isa::kNeon; }

TEST(Pick, KernelsAreThoseOfTheirOrigin) {
  std::vector<const Table*> tables = kernels::runnable_tables();
  for (const Table* table : emulated_tables()) tables.push_back(table);
  for (const FileType& type : kFileTypes) {
    const auto id = static_cast<size_t>(type.type);
    for (const Table* a : tables) {
      for (const Table* b : tables) {
        const Isa from_a = a->matmul_isa[id], from_b = b->matmul_isa[id];
        if (from_a == from_b) continue;
        SCOPED_TRACE(str_cat(type.name, " ", isa_name(a->isa), " ", isa_name(b->isa)));
        EXPECT_NE(a->matmul[id].many, b->matmul[id].many);
        EXPECT_EQ(a->matmul[id].one == b->matmul[id].one, shares_one(from_a, from_b) || shares_one(from_b, from_a));
        EXPECT_EQ(a->matmul[id].few == b->matmul[id].few, shares_few(from_a, from_b) || shares_few(from_b, from_a));
      }
    }
  }
}

}  // namespace
}  // namespace stoker::testing
