#include <gtest/gtest.h>

#include <tuple>

#include "base/cpu.h"
#include "tests/kernels/emulated.h"
#include "tests/kernels/matmul_data.h"

namespace stoker::testing {
namespace {

using kernels::Table;

constexpr float kUntouched = -12345.0f;

struct Case {
  int64_t n_rows, k, n;
  Fill fill;
};

/// A matrix, activations, and what their product is.
class Product {
 public:
  Product(const FileType& type, const Case& c)
      : type_(type),
        c_(c),
        rows_(random_rows(type, c.n_rows, c.k, c.fill, 1)),
        packed_(pack_rows(kernels::scalar_table(), type, rows_, c.n_rows, c.k)),
        x_(c.n, c.k, c.fill, 2) {}

  int64_t n_groups() const { return (c_.n_rows + 15) / 16; }
  int64_t y_stride() const { return n_groups() * 16 + 16; }

  struct Part {
    int64_t group_begin, group_end, row_begin, row_end;
  };
  Part all() const { return {0, n_groups(), 0, c_.n}; }

  /// How a part's weights are fetched: not, or ahead as far as the part or the matrix goes.
  enum class Run { kNone, kPart, kAll };
  std::vector<float> run(kernels::MatmulFn matmul, const Part& part, Run spread = Run::kNone) {
    const int64_t bytes = kernels::group_bytes(type_.type, c_.k);
    const auto from = [&](int64_t group) { return packed_.data() + group * bytes; };
    const kernels::MatmulArgs::Run in_part{from(part.group_begin), from(part.group_end)},
        in_all{from(0), from(n_groups())};
    Lines y(static_cast<size_t>(c_.n * y_stride()) * sizeof(float));
    std::fill_n(y.as<float>(), c_.n * y_stride(), kUntouched);
    Lines scratch(kernels::kMatmulScratchBytes);
    matmul({.w = packed_.data(),
            .group_bytes = bytes,
            .k = c_.k,
            .group_begin = part.group_begin,
            .group_end = part.group_end,
            .x = &x_.get(),
            .row_begin = part.row_begin,
            .row_end = part.row_end,
            .y = y.as<float>(),
            .y_stride = y_stride(),
            .scratch = scratch.data(),
            .spread = spread == Run::kNone   ? nullptr
                      : spread == Run::kPart ? &in_part
                                             : &in_all});
    EXPECT_TRUE(y.guard_intact() && scratch.guard_intact());
    return {y.as<float>(), y.as<float>() + c_.n * y_stride()};
  }

  float reference(int64_t row, int64_t column) const {
    return reference_dot(type_, rows_.data() + column * row_bytes(type_, c_.k), x_.get(), row);
  }

 private:
  FileType type_;
  Case c_;
  std::vector<std::byte> rows_;
  Lines packed_;
  RandomActivations x_;
};

class Matmul : public ::testing::TestWithParam<FileType> {
 protected:
  const FileType& type() const { return GetParam(); }
  const kernels::MatmulKernels& kernels_of(const Table& table) const {
    return table.matmul[static_cast<size_t>(type().type)];
  }
  /// All but the scalar one; the emulated ones where they have kernels of their own.
  std::vector<const Table*> tables() const {
    std::vector<const Table*> all = kernels::runnable_tables();
    all.erase(all.begin());
    if (kernels::activation_form(type().type) == kernels::ActForm::kF32) return all;
    for (const Table* table : emulated_tables()) all.push_back(table);
    return all;
  }
};

// Index of the first float whose bits differ, -1: none.
int64_t first_difference(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i])) return static_cast<int64_t>(i);
  }
  return -1;
}

TEST_P(Matmul, ScalarIsTheOrderStraightFromTheFile) {
  for (Fill fill : {Fill::kRandom, Fill::kExtreme, Fill::kMixed}) {
    for (int64_t k : columns_of(type())) {
      for (const auto& [n_rows, n] : {std::pair<int64_t, int64_t>{17, 1}, {15, 2}, {31, 3}, {33, 17}}) {
        Product product(type(), {n_rows, k, n, fill});
        const auto& kernels = kernels_of(kernels::scalar_table());
        const std::vector<float> y = product.run(n == 1    ? kernels.one
                                                 : n <= 16 ? kernels.few
                                                           : kernels.many,
                                                 product.all());
        for (int64_t row = 0; row < n; ++row) {
          for (int64_t column = 0; column < n_rows; ++column) {
            const float got = y[static_cast<size_t>(row * product.y_stride() + column)];
            ASSERT_TRUE(same_bits(got, product.reference(row, column)))
                << "k " << k << " row " << row << " column " << column << ": " << got << " for "
                << product.reference(row, column);
          }
          // The padding rows of the last group are products too, of zeros; beyond the groups nothing is written.
          for (int64_t column = n_rows; column < product.n_groups() * 16; ++column) {
            ASSERT_EQ(y[static_cast<size_t>(row * product.y_stride() + column)], 0.0f);
          }
          ASSERT_EQ(y[static_cast<size_t>(row * product.y_stride() + product.n_groups() * 16)], kUntouched);
        }
      }
    }
  }
}

TEST_P(Matmul, EveryTableGivesTheScalarBits) {
  for (Fill fill : {Fill::kRandom, Fill::kExtreme, Fill::kMixed}) {
    for (int64_t k : columns_of(type())) {
      for (int64_t n : {1, 2, 3, 5, 16, 17, 37}) {
        Product product(type(), {n == 1 ? 127 : 81, k, n, fill});
        const std::vector<float> want = product.run(kernels_of(kernels::scalar_table()).many, product.all());
        for (const Table* table : tables()) {
          const auto& kernels = kernels_of(*table);
          const auto check = [&](const char* name, kernels::MatmulFn matmul) {
            const int64_t at = first_difference(product.run(matmul, product.all()), want);
            ASSERT_EQ(at, -1) << isa_name(table->isa) << " " << name << " k " << k << " n " << n << " row "
                              << at / product.y_stride() << " column " << at % product.y_stride();
          };
          if (n == 1) {
            ASSERT_NO_FATAL_FAILURE(check("one", kernels.one));
          }
          if (n >= 2 && n <= 16) {
            ASSERT_NO_FATAL_FAILURE(check("few", kernels.few));
          }
          ASSERT_NO_FATAL_FAILURE(check("many", kernels.many));
        }
      }
    }
  }
}

// So many rows that some kernels decode the weights of a group once for all, if they fit into scratch.
TEST_P(Matmul, ManyRowsGiveTheScalarBits) {
  const int64_t short_k = columns_of(type())[1];
  const bool k_quant = kernels::activation_form(type().type) == kernels::ActForm::kA256;
  for (const auto& [n_rows, k, n] : {std::tuple<int64_t, int64_t, int64_t>{33, short_k, 150},
                                     {16, short_k, 1030},
                                     {31, 8960, 40},
                                     {16, 13056, 128}}) {
    if (k == 13056 && !k_quant) continue;
    Product product(type(), {n_rows, k, n, Fill::kMixed});
    const std::vector<float> want = product.run(kernels_of(kernels::scalar_table()).many, product.all());
    for (const Table* table : tables()) {
      const int64_t at = first_difference(product.run(kernels_of(*table).many, product.all()), want);
      ASSERT_EQ(at, -1) << isa_name(table->isa) << " k " << k << " row " << at / product.y_stride() << " column "
                        << at % product.y_stride();
    }
  }
}

// Kernels cut rows into tiles; every number of them is cut another way.
TEST_P(Matmul, AnyNumberOfRowsGivesTheScalarBits) {
  Product product(type(), {33, columns_of(type())[1], 70, Fill::kMixed});
  const std::vector<float> whole = product.run(kernels_of(kernels::scalar_table()).many, product.all());
  for (const Table* table : tables()) {
    for (int64_t n = 1; n <= 70; ++n) {
      const std::vector<float> got = product.run(kernels_of(*table).many, {0, product.n_groups(), 0, n});
      std::vector<float> want(whole.size(), kUntouched);
      for (int64_t row = 0; row < n; ++row) {
        std::copy_n(whole.begin() + row * product.y_stride(), product.n_groups() * 16,
                    want.begin() + row * product.y_stride());
      }
      ASSERT_EQ(first_difference(got, want), -1) << isa_name(table->isa) << " rows " << n;
    }
  }
}

// Whoever computes a part of the rows or groups computes the same bits and writes nothing else.
TEST_P(Matmul, PartsAreThePartsOfTheWhole) {
  const int64_t k = columns_of(type())[1];
  Product product(type(), {150, k, 41, Fill::kMixed});
  const std::vector<float> whole = product.run(kernels_of(kernels::scalar_table()).many, product.all());
  const Product::Part parts[] = {{0, 1, 0, 41}, {9, 10, 3, 4}, {2, 7, 5, 18},  {1, 10, 40, 41},
                                 {3, 4, 0, 2},  {0, 5, 7, 23}, {5, 10, 0, 16}, {4, 4, 0, 41},
                                 {0, 10, 8, 8}, {2, 6, 1, 41}, {1, 8, 4, 37}};
  for (const Table* table : tables()) {
    const auto& kernels = kernels_of(*table);
    for (const Product::Part& part : parts) {
      std::vector<float> want(whole.size(), kUntouched);
      for (int64_t row = part.row_begin; row < part.row_end; ++row) {
        const auto begin = row * product.y_stride() + part.group_begin * 16;
        std::copy_n(whole.begin() + begin, (part.group_end - part.group_begin) * 16, want.begin() + begin);
      }
      const int64_t n = part.row_end - part.row_begin;
      const auto check = [&](kernels::MatmulFn matmul) {
        for (const auto spread : {Product::Run::kNone, Product::Run::kPart, Product::Run::kAll}) {
          ASSERT_EQ(first_difference(product.run(matmul, part, spread), want), -1)
              << isa_name(table->isa) << " groups " << part.group_begin << " to " << part.group_end << ", rows "
              << part.row_begin << " to " << part.row_end << ", run " << static_cast<int>(spread);
        }
      };
      if (n == 1) {
        ASSERT_NO_FATAL_FAILURE(check(kernels.one));
      }
      if (n >= 2 && n <= 16) {
        ASSERT_NO_FATAL_FAILURE(check(kernels.few));
      }
      ASSERT_NO_FATAL_FAILURE(check(kernels.many));
    }
  }
}

// The other tests would be worth little if the order did not show in the bits.
TEST_P(Matmul, AnotherOrderGivesOtherBits) {
  const int64_t k = columns_of(type()).back();
  const int64_t half = k / 2 / 256 * 256, n_rows = 16;
  const std::vector<std::byte> rows = random_rows(type(), n_rows, k, Fill::kRandom, 1);
  const RandomActivations x(1, k, Fill::kRandom, 2);
  kernels::Activations front = x.get(), back = x.get();
  front.k = half;
  back.k = k - half;
  back.f32 += half;
  back.q256 += half;
  back.d256 += half / 256;
  back.sums256 += half / 16;
  back.q32 += half;
  back.d32 += half / 32;
  back.sums32 += half / 32;
  int differences = 0;
  for (int64_t row = 0; row < n_rows; ++row) {
    const std::byte* bytes = rows.data() + row * row_bytes(type(), k);
    const float halves =
        reference_dot(type(), bytes, front, 0) + reference_dot(type(), bytes + row_bytes(type(), half), back, 0);
    differences += !same_bits(halves, reference_dot(type(), bytes, x.get(), 0));
  }
  EXPECT_GT(differences, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, Matmul, ::testing::ValuesIn(kFileTypes),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace stoker::testing
