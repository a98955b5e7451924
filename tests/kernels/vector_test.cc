#include <gtest/gtest.h>

#include <functional>

#include "kernels/table.h"
#include "tests/kernels/numbers.h"

namespace stoker::kernels {
namespace {

constexpr int64_t kSizes[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 64, 65, 100, 127, 288, 577, 2880};
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

float* at(Fenced& values) { return values.data(); }

/// Normal numbers, whose sums show every change of order, tiny ones, odd ones, and odd ones with NaN and infinity.
std::vector<float> inputs(int kind, int64_t n) {
  const auto count = static_cast<size_t>(n);
  const auto seed = static_cast<uint32_t>(n);
  if (kind == 0) return normal_values(count, seed, 3.0f);
  if (kind == 1) return normal_values(count, seed, 1e-30f);
  return odd_values(count, seed, kind == 3);
}

/// Runs `run(table, x, y, n)` on every table: `y` must be the scalar's and its neighbours intact; then again in place.
void expect_scalar_bits(const std::function<void(const Table&, const float*, float*, int64_t)>& run) {
  for (const Table* table : runnable_tables()) {
    for (int64_t n : kSizes) {
      for (int kind = 0; kind < 4; ++kind) {
        const std::vector<float> x = inputs(kind, n);
        Fenced input(x), expected(x.size()), actual(x.size()), in_place(x);
        run(scalar_table(), at(input), at(expected), n);
        run(*table, at(input), at(actual), n);
        run(*table, at(in_place), at(in_place), n);
        EXPECT_EQ(bits(actual.values()), bits(expected.values())) << isa_name(table->isa) << " n " << n;
        EXPECT_EQ(bits(in_place.values()), bits(expected.values())) << isa_name(table->isa) << " in place, n " << n;
        EXPECT_EQ(bits(input.values()), bits(x));
        EXPECT_TRUE(actual.intact() && in_place.intact()) << isa_name(table->isa) << " wrote beyond n " << n;
      }
    }
  }
}

TEST(Vector, RmsNormSameBits) {
  const std::vector<float> gain = normal_values(2880, 5);
  expect_scalar_bits(
      [&](const Table& t, const float* x, float* y, int64_t n) { t.rms_norm(x, gain.data(), 1e-6f, n, y); });
  expect_scalar_bits([&](const Table& t, const float* x, float* y, int64_t n) { t.rms_norm(x, nullptr, 1e-5f, n, y); });
}

TEST(Vector, LayerNormSameBits) {
  const std::vector<float> gain = normal_values(2880, 5);
  expect_scalar_bits(
      [&](const Table& t, const float* x, float* y, int64_t n) { t.layer_norm(x, gain.data(), 1e-6f, n, y); });
  expect_scalar_bits(
      [&](const Table& t, const float* x, float* y, int64_t n) { t.layer_norm(x, nullptr, 1e-5f, n, y); });
}

TEST(Vector, SumSameBits) {
  expect_scalar_bits([](const Table& t, const float* x, float* y, int64_t n) { std::fill_n(y, n, t.sum(x, n)); });
  const std::vector<float> x = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
  for (const Table* table : runnable_tables()) EXPECT_EQ(table->sum(x.data(), 17), 131071) << isa_name(table->isa);
}

// Another order of the sum changes about one row in ten.
TEST(Vector, RmsNormSameBitsOnManyRows) {
  const int64_t n = 577;
  for (const Table* table : runnable_tables()) {
    for (uint32_t seed = 0; seed < 200; ++seed) {
      const std::vector<float> x = normal_values(static_cast<size_t>(n), seed);
      std::vector<float> expected(x.size()), actual(x.size());
      scalar_table().rms_norm(x.data(), nullptr, 1e-6f, n, expected.data());
      table->rms_norm(x.data(), nullptr, 1e-6f, n, actual.data());
      ASSERT_EQ(bits(actual), bits(expected)) << isa_name(table->isa) << " seed " << seed;
      scalar_table().layer_norm(x.data(), nullptr, 1e-6f, n, expected.data());
      table->layer_norm(x.data(), nullptr, 1e-6f, n, actual.data());
      ASSERT_EQ(bits(actual), bits(expected)) << isa_name(table->isa) << " seed " << seed;
    }
  }
}

TEST(Vector, AddAndScaleSameBits) {
  const std::vector<float> b = odd_values(2880, 6, true);
  expect_scalar_bits([&](const Table& t, const float* x, float* y, int64_t n) { t.add(x, b.data(), n, y); });
  expect_scalar_bits([&](const Table& t, const float* x, float* y, int64_t n) { t.mul(x, b.data(), n, y); });
  expect_scalar_bits([&](const Table& t, const float* x, float* y, int64_t n) { t.scale(x, 0.1f, n, y); });
}

TEST(Vector, GatesSameBits) {
  const std::vector<float> up = odd_values(2880, 7, true);
  expect_scalar_bits([&](const Table& t, const float* x, float* y, int64_t n) { t.silu_mul(x, up.data(), n, y); });
  expect_scalar_bits([&](const Table& t, const float* x, float* y, int64_t n) { t.gelu_mul(x, up.data(), n, y); });
  expect_scalar_bits([&](const Table& t, const float* x, float* y, int64_t n) { t.gelu_erf_mul(x, up.data(), n, y); });
  expect_scalar_bits(
      [&](const Table& t, const float* x, float* y, int64_t n) { t.clamped_silu_mul(x, up.data(), n, y); });
}

TEST(Vector, ActivationsSameBits) {
  expect_scalar_bits([&](const Table& t, const float* x, float* y, int64_t n) { t.gelu(x, n, y); });
  expect_scalar_bits([&](const Table& t, const float* x, float* y, int64_t n) { t.gelu_erf(x, n, y); });
  expect_scalar_bits([&](const Table& t, const float* x, float* y, int64_t n) { t.relu_squared(x, n, y); });
  const Xielu p{.alpha_p = 0.8f, .alpha_n = 1.1f, .beta = 0.5f, .eps = -1e-6f};
  expect_scalar_bits([&](const Table& t, const float* x, float* y, int64_t n) { t.xielu(x, p, n, y); });
  const std::vector<float> a = odd_values(2880, 7, true);
  expect_scalar_bits([&](const Table& t, const float* x, float* y, int64_t n) { t.sigmoid(x, n, y); });
  expect_scalar_bits([&](const Table& t, const float* x, float* y, int64_t n) { t.sigmoid_mul(x, a.data(), n, y); });
  expect_scalar_bits([&](const Table& t, const float* x, float* y, int64_t n) { t.softplus(x, n, y); });
  expect_scalar_bits([&](const Table& t, const float* x, float* y, int64_t n) { t.exp_mul(x, a.data(), n, y); });
}

TEST(Vector, AddScaledSameBits) {
  const std::vector<float> sum = odd_values(2880, 9, true);
  expect_scalar_bits([&](const Table& t, const float* x, float* y, int64_t n) {
    std::copy(x, x + n, y);
    t.add_scaled(0.3f, sum.data(), n, y);
  });
}

/// All magnitudes and both signs, and 1000 neighbours of every place where a function changes its course.
std::vector<float> many_arguments() {
  std::vector<float> x;
  for (uint32_t magnitude = 0; magnitude < 0x7f800000u; magnitude += 49999) {
    x.push_back(std::bit_cast<float>(magnitude));
    x.push_back(-x.back());
  }
  for (float border : {0.34657359f, 0.625f, 5.0f, 10.0f, 43.5f, 44.0f, 87.0f, 88.0f}) {
    for (uint32_t i = 0; i < 1000; ++i) {
      x.push_back(std::bit_cast<float>(std::bit_cast<uint32_t>(border) - 500 + i));
      x.push_back(-x.back());
    }
  }
  return x;
}

TEST(Vector, FunctionsSameBitsForManyArguments) {
  const std::vector<float> x = many_arguments(), one(x.size(), 1.0f);
  const auto n = static_cast<int64_t>(x.size());
  const auto run = [&](const Table& table) {
    std::vector<float> silu(x.size()), gelu(x.size()), softplus(x.size()), tanh = x;
    table.softplus(x.data(), n, softplus.data());
    table.silu_mul(x.data(), one.data(), n, silu.data());
    table.gelu_mul(x.data(), one.data(), n, gelu.data());
    table.softcap(tanh.data(), 1.0f, n);
    return std::vector{bits(silu), bits(gelu), bits(tanh), bits(softplus)};
  };
  const auto expected = run(scalar_table());
  for (const Table* table : runnable_tables()) EXPECT_TRUE(run(*table) == expected) << isa_name(table->isa);
}

TEST(Vector, SoftcapSameBits) {
  expect_scalar_bits([](const Table& t, const float* x, float* y, int64_t n) {
    std::copy(x, x + n, y);
    t.softcap(y, 30.0f, n);
  });
}

/// Rope on 2 n values with n angles, in place.
void expect_rope_bits(decltype(Table::rope_halves) Table::*rope) {
  for (const Table* table : runnable_tables()) {
    for (int64_t n : kSizes) {
      const auto count = static_cast<size_t>(n);
      Fenced cos(normal_values(count, 1)), sin(normal_values(count, 2));
      Fenced expected(odd_values(2 * count, 3, true)), actual(expected.values());
      (scalar_table().*rope)(at(expected), at(cos), at(sin), n);
      (table->*rope)(at(actual), at(cos), at(sin), n);
      EXPECT_EQ(bits(actual.values()), bits(expected.values())) << isa_name(table->isa) << " pairs " << n;
      EXPECT_TRUE(actual.intact());
    }
  }
}

TEST(Vector, RopeSameBits) {
  expect_rope_bits(&Table::rope_halves);
  expect_rope_bits(&Table::rope_interleaved);
}

TEST(Vector, RopeTurnsTheRightPairs) {
  for (const Table* table : runnable_tables()) {
    const std::vector<float> cos = {0.0f, 1.0f, 0.5f}, sin = {1.0f, 0.0f, 0.25f};
    std::vector<float> halves = {1, 2, 3, 4, 5, 6}, interleaved = {1, 4, 2, 5, 3, 6};
    table->rope_halves(halves.data(), cos.data(), sin.data(), 3);
    table->rope_interleaved(interleaved.data(), cos.data(), sin.data(), 3);
    EXPECT_EQ(halves, (std::vector<float>{-4, 2, 0, 1, 5, 3.75f}));
    EXPECT_EQ(interleaved, (std::vector<float>{-4, 1, 2, 5, 0, 3.75f}));
  }
}

TEST(Vector, AllFiniteFindsEachPlace) {
  for (const Table* table : runnable_tables()) {
    for (int64_t n : {1, 15, 16, 17, 40, 100}) {
      Fenced x(odd_values(static_cast<size_t>(n), 9));
      EXPECT_TRUE(table->all_finite(at(x), n));
      for (int64_t i = 0; i < n; ++i) {
        for (float wild : {kNaN, -kNaN, kInfinity, -kInfinity}) {
          const float kept = std::exchange(at(x)[i], wild);
          EXPECT_FALSE(table->all_finite(at(x), n)) << isa_name(table->isa) << ' ' << i << " of " << n;
          at(x)[i] = kept;
        }
      }
    }
    EXPECT_TRUE(table->all_finite(nullptr, 0));
  }
}

TEST(Vector, ArgmaxTakesTheLowestOfEquals) {
  for (const Table* table : runnable_tables()) {
    for (int64_t n : {1, 2, 8, 15, 16, 17, 100, 1000}) {
      for (int64_t i = 0; i < n; i += 1 + n / 37) {
        std::vector<float> x(static_cast<size_t>(n), -3.0f);
        x[static_cast<size_t>(i)] = 2.0f;
        x.back() = 2.0f;
        x.front() = i == 0 ? 2.0f : kNaN;
        EXPECT_EQ(table->argmax(x.data(), n), i) << isa_name(table->isa) << " n " << n;
      }
    }
    EXPECT_EQ(table->argmax(std::vector<float>(40, kNaN).data(), 40), 0);
    EXPECT_EQ(table->argmax(std::vector<float>(40, -kInfinity).data(), 40), 0);
    const std::vector<float> zeros = {kNaN, -1.0f, -0.0f, 0.0f, kNaN, 0.0f};
    EXPECT_EQ(table->argmax(zeros.data(), 6), 2);
    const std::vector<float> infinite = {kNaN, 5.0f, kInfinity, 1e38f, kInfinity};
    EXPECT_EQ(table->argmax(infinite.data(), 5), 2);
  }
}

TEST(Vector, CloseToDouble) {
  const Table& table = scalar_table();
  const int64_t n = 4099;
  const auto count = static_cast<size_t>(n);
  const std::vector<float> x = normal_values(count, 11, 3.0f), gain = normal_values(count, 12);
  std::vector<float> y(count);
  table.rms_norm(x.data(), gain.data(), 1e-5f, n, y.data());
  double sum = 0;
  for (float v : x) sum += static_cast<double>(v) * v;
  const double r = 1 / std::sqrt(sum / static_cast<double>(n) + 1e-5);
  for (size_t i = 0; i < count; ++i) {
    const double want = x[i] * r * gain[i];
    EXPECT_NEAR(y[i], want, 4e-7 * std::abs(want));
  }
  table.layer_norm(x.data(), gain.data(), 1e-5f, n, y.data());
  double mean = 0, variance = 0;
  for (float v : x) mean += static_cast<double>(v) / static_cast<double>(n);
  for (float v : x) variance += (v - mean) * (v - mean) / static_cast<double>(n);
  for (size_t i = 0; i < count; ++i) {
    const double want = (x[i] - mean) / std::sqrt(variance + 1e-5) * gain[i];
    EXPECT_NEAR(y[i], want, 4e-7 * std::abs(want) + 4e-7);
  }
  table.silu_mul(x.data(), gain.data(), n, y.data());
  for (size_t i = 0; i < count; ++i) {
    const double want = x[i] / (1 + std::exp(-static_cast<double>(x[i]))) * gain[i];
    EXPECT_NEAR(y[i], want, 4e-7 * std::abs(want));
  }
  table.gelu_mul(x.data(), gain.data(), n, y.data());
  for (size_t i = 0; i < count; ++i) {
    const double v = x[i];
    const double want = 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))) * gain[i];
    EXPECT_NEAR(y[i], want, 1e-6 * std::abs(want) + 5e-7 * std::abs(gain[i]));
  }
  std::vector<float> gelu(count);
  table.gelu(x.data(), n, gelu.data());
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(gelu[i] * gain[i], y[i]);
  table.gelu_erf_mul(x.data(), gain.data(), n, y.data());
  table.gelu_erf(x.data(), n, gelu.data());
  for (size_t i = 0; i < count; ++i) {
    const double v = x[i], want = 0.5 * v * std::erfc(-v / std::sqrt(2.0));
    EXPECT_NEAR(gelu[i], want, 1e-6 * std::abs(want) + 4e-7);
    EXPECT_EQ(gelu[i] * gain[i], y[i]);
  }
  table.relu_squared(x.data(), n, y.data());
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(y[i], x[i] > 0 ? x[i] * x[i] : 0.0f);
  const Xielu p{.alpha_p = 0.8f, .alpha_n = 1.1f, .beta = 0.5f, .eps = -1e-6f};
  table.xielu(x.data(), p, n, y.data());
  for (size_t i = 0; i < count; ++i) {
    const auto v = static_cast<double>(x[i]), beta = static_cast<double>(p.beta);
    const double below = static_cast<double>(p.alpha_n) * (std::expm1(std::min(v, -1e-6)) - v) + beta * v;
    const double want = v > 0 ? static_cast<double>(p.alpha_p) * v * v + beta * v : below;
    EXPECT_NEAR(y[i], want, 1e-6 * std::abs(want) + 5e-7);
  }
  for (float wide : {1.0f, 4.0f}) {  // 4: beyond both clamps
    std::vector<float> gate(count), up(count);
    for (size_t i = 0; i < count; ++i) gate[i] = wide * x[i], up[i] = wide * 3 * gain[i];
    table.clamped_silu_mul(gate.data(), up.data(), n, y.data());
    for (size_t i = 0; i < count; ++i) {
      const double g = std::min<double>(gate[i], 7), u = std::clamp<double>(up[i], -7, 7);
      const double want = g / (1 + std::exp(-1.702 * g)) * (u + 1);
      EXPECT_NEAR(y[i], want, 2e-6 * std::abs(want) + 1e-9);
    }
  }
  std::vector<float> sigmoid(count), decay(count);
  table.sigmoid(x.data(), n, sigmoid.data());
  table.sigmoid_mul(x.data(), gain.data(), n, y.data());
  table.exp_mul(x.data(), gain.data(), n, decay.data());
  for (size_t i = 0; i < count; ++i) {
    const double want = 1 / (1 + std::exp(-static_cast<double>(x[i])));
    EXPECT_NEAR(sigmoid[i], want, 4e-7 * want);
    EXPECT_NEAR(y[i], want * gain[i], 4e-7 * std::abs(want * gain[i]));
    const double power = std::exp(static_cast<double>(x[i] * gain[i]));
    EXPECT_NEAR(decay[i], power, 2e-7 * power);
  }
  y = x;
  table.softcap(y.data(), 2.5f, n);
  for (size_t i = 0; i < count; ++i) EXPECT_NEAR(y[i], 2.5 * std::tanh(x[i] / 2.5), 6e-7);
}

TEST(Vector, NaNComesThrough) {
  for (const Table* table : runnable_tables()) {
    std::vector<float> x = {1.0f, kNaN, 2.0f}, one(3, 1.0f), y(3);
    table->silu_mul(x.data(), one.data(), 3, y.data());
    EXPECT_TRUE(std::isnan(y[1]));
    table->gelu_mul(x.data(), one.data(), 3, y.data());
    EXPECT_TRUE(std::isnan(y[1]));
    table->clamped_silu_mul(x.data(), one.data(), 3, y.data());
    EXPECT_TRUE(std::isnan(y[1]));
    table->gelu(x.data(), 3, y.data());
    EXPECT_TRUE(std::isnan(y[1]));
    table->gelu_erf(x.data(), 3, y.data());
    EXPECT_TRUE(std::isnan(y[1]));
    table->relu_squared(x.data(), 3, y.data());
    EXPECT_TRUE(std::isnan(y[1]));
    table->xielu(x.data(), {.alpha_p = 1, .alpha_n = 1, .beta = 1, .eps = -1e-6f}, 3, y.data());
    EXPECT_TRUE(std::isnan(y[1]));
    table->softplus(x.data(), 3, y.data());
    EXPECT_TRUE(std::isnan(y[1]));
    table->sigmoid(x.data(), 3, y.data());
    EXPECT_TRUE(std::isnan(y[1]));
    table->exp_mul(x.data(), one.data(), 3, y.data());
    EXPECT_TRUE(std::isnan(y[1]));
    table->clamped_silu_mul(one.data(), x.data(), 3, y.data());
    EXPECT_TRUE(std::isnan(y[1]));
    table->softcap(x.data(), 5.0f, 3);
    EXPECT_TRUE(std::isnan(x[1]) && !std::isnan(x[0]) && !std::isnan(x[2])) << isa_name(table->isa);
  }
}

}  // namespace
}  // namespace stoker::kernels
