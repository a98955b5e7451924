// Convolution and recurrence: the scalar bits on every table, the formulas in double, and no cut that shows.
#include <gtest/gtest.h>

#include "kernels/table.h"
#include "tests/kernels/numbers.h"

namespace stoker::kernels {
namespace {

std::vector<float> part(const std::vector<float>& values, int64_t begin, int64_t n) {
  return {values.begin() + begin, values.begin() + begin + n};
}

/// Convolves rows of `channels` in pieces; what is left of the history stands behind the rows.
std::vector<float> convolve(const Table& table, int taps, int64_t channels, std::vector<float> x,
                            const std::vector<int64_t>& pieces, bool bias, bool silu) {
  const std::vector<float> w = normal_values(static_cast<size_t>(taps * channels), 3),
                           b = normal_values(static_cast<size_t>(channels), 4);
  Fenced history(static_cast<size_t>((taps - 1) * channels)), rows(x);
  int64_t at = 0;
  for (const int64_t n : pieces) {
    table.convolve({.taps = taps,
                    .n_channels = channels,
                    .w = w.data(),
                    .w_stride = channels,
                    .bias = bias ? b.data() : nullptr,
                    .silu = silu,
                    .from = at == 0 ? nullptr : history.data(),
                    .to = history.data(),
                    .state_stride = channels,
                    .x = rows.data() + at * channels,
                    .stride = channels,
                    .n = n});
    at += n;
  }
  EXPECT_TRUE(rows.intact() && history.intact());
  std::vector<float> out = rows.values();
  const std::vector<float> left = history.values();
  out.insert(out.end(), left.begin(), left.end());
  return out;
}

TEST(Recur, ConvolutionSameBitsInAnyPieces) {
  for (const int taps : {2, 3, 4}) {
    for (const int64_t channels : {1, 7, 16, 33, 48}) {
      const std::vector<float> x = odd_values(static_cast<size_t>(9 * channels), static_cast<uint32_t>(channels), true);
      const auto want = convolve(scalar_table(), taps, channels, x, {9}, taps == 3, taps != 2);
      for (const Table* table : runnable_tables()) {
        for (const std::vector<int64_t>& pieces : {std::vector<int64_t>{9}, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {2, 4, 3}}) {
          EXPECT_EQ(bits(convolve(*table, taps, channels, x, pieces, taps == 3, taps != 2)), bits(want))
              << isa_name(table->isa) << ' ' << taps << " taps, " << channels << " channels";
        }
      }
    }
  }
}

TEST(Recur, ConvolutionIsWhatItSays) {
  const int64_t channels = 5;
  const std::vector<float> x = normal_values(static_cast<size_t>(6 * channels), 1);
  const std::vector<float> w = normal_values(static_cast<size_t>(4 * channels), 3);
  const std::vector<float> got = convolve(scalar_table(), 4, channels, x, {6}, false, true);
  for (int64_t t = 0; t < 6; ++t) {
    for (int64_t c = 0; c < channels; ++c) {
      double y = 0;
      for (int64_t j = 0; j < 4; ++j) {
        if (t - 3 + j >= 0)
          y += static_cast<double>(w[static_cast<size_t>(j * channels + c)]) *
               x[static_cast<size_t>((t - 3 + j) * channels + c)];
      }
      EXPECT_NEAR(got[static_cast<size_t>(t * channels + c)], y / (1 + std::exp(-y)), 1e-6);
    }
  }
  EXPECT_EQ(part(got, 6 * channels, 3 * channels), part(x, 3 * channels, 3 * channels)) << "the last three rows stay";
}

struct Head {
  int64_t k_dim, v_dim, n;
  bool delta;
  std::vector<float> q, k, w, g, v, beta;
  Head(int64_t k_rows, int64_t v_columns, int64_t n_tokens, bool is_delta, bool odd = false)
      : k_dim(k_rows), v_dim(v_columns), n(n_tokens), delta(is_delta) {
    const auto rows = static_cast<size_t>(n * k_dim);
    const auto make = [&](size_t count, uint32_t seed) {
      return odd ? odd_values(count, seed) : normal_values(count, seed, 0.3f);
    };
    q = make(rows, 1), k = make(rows, 2), v = make(static_cast<size_t>(n * v_dim), 3);
    for (float x : normal_values(rows, 4)) g.push_back(1 / (1 + std::exp(-x)));
    for (size_t i = 0; i < rows; ++i) w.push_back(k[i] * g[i]);
    for (float x : normal_values(static_cast<size_t>(n), 5)) beta.push_back(1 / (1 + std::exp(-x)));
  }
  /// Outputs, then the state.
  std::vector<float> run(const Table& table, int64_t piece, bool in_place) const {
    Fenced first(static_cast<size_t>(k_dim * v_dim)), second(static_cast<size_t>(k_dim * v_dim));
    Fenced out(static_cast<size_t>(n * v_dim));
    float *from = nullptr, *to = first.data();
    for (int64_t at = 0; at < n; at += piece) {
      table.recur({.k_dim = k_dim,
                   .v_dim = v_dim,
                   .delta = delta,
                   .from = from,
                   .to = to,
                   .q = q.data() + at * k_dim,
                   .k = k.data() + at * k_dim,
                   .w = w.data() + at * k_dim,
                   .g = g.data() + at * k_dim,
                   .v = v.data() + at * v_dim,
                   .v_stride = v_dim,
                   .beta = beta.data() + at,
                   .out = out.data() + at * v_dim,
                   .out_stride = v_dim,
                   .n = std::min(piece, n - at)});
      from = to;
      if (!in_place) to = to == first.data() ? second.data() : first.data();
    }
    EXPECT_TRUE(first.intact() && second.intact() && out.intact());
    std::vector<float> all = out.values();
    all.insert(all.end(), from, from + k_dim * v_dim);
    return all;
  }
};

TEST(Recur, SameBitsInAnyPieces) {
  struct Size {
    int64_t k, v;
  };
  for (const Size size : {Size{16, 16}, {17, 48}, {128, 128}, {1, 32}, {64, 80}}) {
    for (const bool delta : {true, false}) {
      for (const bool odd : {false, true}) {
        const Head head(size.k, size.v, 13, delta, odd);
        const auto want = head.run(scalar_table(), 13, true);
        for (const Table* table : runnable_tables()) {
          for (const int64_t piece : {1, 5, 13}) {
            for (const bool in_place : {true, false}) {
              EXPECT_EQ(bits(head.run(*table, piece, in_place)), bits(want))
                  << isa_name(table->isa) << ' ' << size.k << " x " << size.v << ", " << piece << " tokens a call";
            }
          }
        }
      }
    }
  }
}

TEST(Recur, IsTheDeltaRule) {
  for (const bool delta : {true, false}) {
    const Head h(24, 32, 10, delta);
    const std::vector<float> got = h.run(*runnable_tables().back(), 4, true);
    std::vector<double> s(static_cast<size_t>(h.k_dim * h.v_dim));
    for (int64_t t = 0; t < h.n; ++t) {
      for (int64_t j = 0; j < h.v_dim; ++j) {
        const auto at = [&](int64_t i) -> double& { return s[static_cast<size_t>(i * h.v_dim + j)]; };
        const auto of = [&](const std::vector<float>& x, int64_t i) {
          return static_cast<double>(x[static_cast<size_t>(t * h.k_dim + i)]);
        };
        double known = 0, out = 0;
        for (int64_t i = 0; i < h.k_dim; ++i) at(i) *= of(h.g, i), known += of(h.k, i) * at(i);
        const double v = h.v[static_cast<size_t>(t * h.v_dim + j)],
                     e = h.beta[static_cast<size_t>(t)] * (delta ? v - known : v);
        for (int64_t i = 0; i < h.k_dim; ++i) at(i) += of(h.k, i) * e, out += of(h.q, i) * at(i);
        EXPECT_NEAR(got[static_cast<size_t>(t * h.v_dim + j)], out, 2e-6);
      }
    }
  }
}

}  // namespace
}  // namespace stoker::kernels
