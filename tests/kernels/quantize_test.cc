#include <gtest/gtest.h>

#include <cstdlib>
#include <span>

#include "kernels/table.h"
#include "tests/kernels/numbers.h"

namespace stoker::kernels {
namespace {

using Quantize = decltype(Table::quantize_a32);

/// The tables of one call, filled with marks so that what is not written shows.
struct Quantized {
  Quantized(int64_t n, int64_t k, int scales, int sums_per_super)
      : n_super((k + 255) / 256),
        q(static_cast<size_t>(n * n_super * 256), 99),
        d(static_cast<size_t>(n * n_super * scales), -1.0f),
        sums(static_cast<size_t>(n * n_super * sums_per_super), 9999),
        bad(static_cast<size_t>(n), 7) {}

  int64_t n_super;
  std::vector<int8_t> q;
  std::vector<float> d;
  std::vector<int16_t> sums;
  std::vector<uint8_t> bad;

  bool operator==(const Quantized& other) const {
    return q == other.q && bits(d) == bits(other.d) && sums == other.sums && bad == other.bad;
  }
};

struct Form {
  const char* name;
  Quantize Table::*function;
  int block;
  int sum_block;
};
constexpr Form kForms[] = {{"a256", &Table::quantize_a256, 256, 16}, {"a32", &Table::quantize_a32, 32, 32}};

Quantized quantize(const Table& table, const Form& form, const std::vector<float>& x, int64_t n, int64_t k,
                   int64_t row_begin, int64_t row_end) {
  Quantized out(n, k, 256 / form.block, 256 / form.sum_block);
  const int64_t stride = static_cast<int64_t>(x.size()) / n;
  (table.*form.function)({.x = x.data(),
                          .stride = stride,
                          .n = n,
                          .k = k,
                          .row_begin = row_begin,
                          .row_end = row_end,
                          .q = out.q.data(),
                          .d = out.d.data(),
                          .sums = out.sums.data(),
                          .bad = out.bad.data()});
  return out;
}

/// n rows of k values with magnitudes from denormal to huge, some blocks zero, some full of ties, in rows of k + 5.
std::vector<float> test_rows(int64_t n, int64_t k, uint32_t seed) {
  const int64_t stride = k + 5;
  std::vector<float> x = normal_values(static_cast<size_t>(n * stride), seed);
  std::mt19937 random(seed);
  for (size_t block = 0; block * 32 < x.size(); ++block) {
    const uint32_t kind = random() % 8;
    const int exponent = static_cast<int>(random() % 270) - 145;
    for (size_t i = block * 32; i < std::min(x.size(), block * 32 + 32); ++i) {
      if (kind < 4) x[i] = std::ldexp(x[i], kind < 2 ? exponent : exponent / 10);
      if (kind == 4) x[i] = 0.5f * static_cast<float>(static_cast<int>(random() % 255) - 127);
      if (kind == 5) x[i] = i % 3 == 0 ? -0.0f : 0.0f;
    }
    if (kind == 4) x[block * 32] = 127.0f;  // The scale is 1 and halves are ties.
  }
  return x;
}

TEST(Quantize, SameBitsAsScalar) {
  for (const Form& form : kForms) {
    for (int64_t k : {32, 64, 96, 224, 256, 288, 512, 576, 896, 2880, 4096}) {
      for (int64_t n : {1, 2, 5}) {
        const std::vector<float> x = test_rows(n, k, static_cast<uint32_t>(k + n));
        const Quantized expected = quantize(scalar_table(), form, x, n, k, 0, n);
        EXPECT_EQ(expected.bad, std::vector<uint8_t>(static_cast<size_t>(n), 7)) << "good rows are left alone";
        for (const Table* table : runnable_tables()) {
          EXPECT_TRUE(quantize(*table, form, x, n, k, 0, n) == expected)
              << isa_name(table->isa) << ' ' << form.name << " n " << n << " k " << k;
        }
      }
    }
  }
}

TEST(Quantize, EachRowByItself) {
  const int64_t n = 6, k = 544;
  const std::vector<float> x = test_rows(n, k, 3);
  for (const Table* table : runnable_tables()) {
    for (const Form& form : kForms) {
      const Quantized all = quantize(*table, form, x, n, k, 0, n);
      const Quantized part = quantize(*table, form, x, n, k, 2, 4);
      for (int64_t s = 0; s < all.n_super; ++s) {
        for (int64_t row = 0; row < n; ++row) {
          const bool written = row >= 2 && row < 4;
          const auto at = static_cast<size_t>((s * n + row) * 256);
          const std::vector<int8_t> marks(256, 99);
          const std::span<const int8_t> want = written ? std::span(all.q).subspan(at, 256) : std::span(marks);
          EXPECT_TRUE(std::equal(want.begin(), want.end(), part.q.begin() + static_cast<std::ptrdiff_t>(at)))
              << isa_name(table->isa) << ' ' << form.name << " row " << row;
        }
      }
    }
  }
}

/// What docs/kernels.md says about one row, checked in double.
void check_row(const Form& form, const std::vector<float>& x, int64_t k, const Quantized& out) {
  for (int64_t i = 0; i < out.n_super * 256; ++i) {
    const double value = i < k ? x[static_cast<size_t>(i)] : 0.0;
    const double d = out.d[static_cast<size_t>(i / form.block)];
    const int q = out.q[static_cast<size_t>(i)];
    ASSERT_LE(std::abs(q), 127);
    if (i >= k) {
      ASSERT_EQ(q, 0);
    }
    if (d == 0) {
      ASSERT_EQ(q, 0);
      ASSERT_LT(std::abs(value), 0x1p-100);
    } else {
      ASSERT_NEAR(value, d * q, d * 0.50001) << "value " << i;
    }
  }
  for (size_t s = 0; s < out.sums.size(); ++s) {
    int sum = 0;
    for (int i = 0; i < form.sum_block; ++i)
      sum += out.q[s * static_cast<size_t>(form.sum_block) + static_cast<size_t>(i)];
    ASSERT_EQ(out.sums[s], sum);
  }
}

TEST(Quantize, ScalesSumsAndPadding) {
  for (const Table* table : runnable_tables()) {
    for (const Form& form : kForms) {
      for (int64_t k : {32, 256, 288, 2880}) {
        const std::vector<float> x = test_rows(1, k, static_cast<uint32_t>(k));
        check_row(form, x, k, quantize(*table, form, x, 1, k, 0, 1));
      }
    }
  }
}

TEST(Quantize, TiesGoToEven) {
  std::vector<float> x(32, 0.0f);
  x[0] = 127.0f;
  for (int i = 1; i < 32; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i) - 16.5f;
  for (const Table* table : runnable_tables()) {
    const Quantized out = quantize(*table, kForms[1], x, 1, 32, 0, 1);
    for (int i = 1; i < 32; ++i) EXPECT_EQ(out.q[static_cast<size_t>(i)], std::nearbyint(x[static_cast<size_t>(i)]));
  }
}

TEST(Quantize, FlagsWhatIsNotFiniteAndWritesZeros) {
  const int64_t n = 3, k = 288;
  for (const Table* table : runnable_tables()) {
    for (const Form& form : kForms) {
      for (float wild : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN(),
                         std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
        for (int64_t i : {0, 31, 32, 100, 255, 256, 287}) {
          std::vector<float> x = normal_values(static_cast<size_t>(n * k), 8);
          const Quantized good = quantize(*table, form, x, n, k, 0, n);
          x[static_cast<size_t>(k + i)] = wild;
          const Quantized out = quantize(*table, form, x, n, k, 0, n);
          EXPECT_EQ(out.bad, (std::vector<uint8_t>{7, 1, 7}));
          const auto super = static_cast<size_t>(i / 256 * n + 1);
          const size_t block =
              super * static_cast<size_t>(256 / form.block) + static_cast<size_t>(i % 256 / form.block);
          EXPECT_EQ(out.d[block], 0.0f);
          for (size_t j = 0; j < out.q.size(); ++j) {
            const bool same_block = j / static_cast<size_t>(form.block) == block;
            EXPECT_EQ(out.q[j], same_block ? 0 : good.q[j]) << isa_name(table->isa) << ' ' << form.name << ' ' << j;
          }
        }
      }
    }
  }
}

TEST(Quantize, NoFlagsWanted) {
  std::vector<float> x(32, std::numeric_limits<float>::infinity());
  for (const Table* table : runnable_tables()) {
    Quantized out(1, 32, 8, 8);
    table->quantize_a32({.x = x.data(),
                         .stride = 32,
                         .n = 1,
                         .k = 32,
                         .row_begin = 0,
                         .row_end = 1,
                         .q = out.q.data(),
                         .d = out.d.data(),
                         .sums = out.sums.data(),
                         .bad = nullptr});
    EXPECT_EQ(out.sums, std::vector<int16_t>(8, 0));
  }
}

}  // namespace
}  // namespace stoker::kernels
