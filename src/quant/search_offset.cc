#include <limits>

#include "quant/search.h"

namespace stoker::quant {
namespace {

constexpr int kGuesses = 21;  // First guesses of fit_line, and the distance between them in levels.
constexpr float kFirstGuess = -1.0f, kGuessStep = 0.1f;
constexpr int kLineRefinements = 4;
constexpr float kLargest = std::numeric_limits<float>::max();

// y ~ scale * q - min.
struct Line {
  float scale = 0, min = 0;
  float error = kLargest;
};

// The best line for given levels whose min is not negative, as the files cannot hold one.
Line solve_line(const float* y, int n, const uint8_t* q) {
  float sum_y = 0, sum_q = 0, sum_qq = 0, sum_yq = 0;
  for (int i = 0; i < n; ++i) {
    const auto level = static_cast<float>(q[i]);
    sum_y += y[i];
    sum_q += level;
    sum_qq += level * level;
    sum_yq += y[i] * level;
  }
  const auto count = static_cast<float>(n);
  const float determinant = count * sum_qq - sum_q * sum_q;
  Line line;
  if (determinant > 0) {
    line.scale = (count * sum_yq - sum_y * sum_q) / determinant;
    line.min = (sum_q * sum_yq - sum_qq * sum_y) / determinant;
  } else {
    line.min = -sum_y / count;  // All levels are equal: they are zero.
  }
  if (line.min < 0) {
    line.min = 0;
    line.scale = sum_qq > 0 ? sum_yq / sum_qq : 0.0f;
  }
  if (line.scale < 0) line.scale = 0;
  line.error = 0;
  for (int i = 0; i < n; ++i) {
    const float miss = y[i] + line.min - line.scale * static_cast<float>(q[i]);
    line.error += miss * miss;
  }
  return line;
}

Line fit_line(const float* y, int n, int top) {
  float lo = 0, hi = y[0];
  for (int i = 0; i < n; ++i) {
    lo = std::min(lo, y[i]);
    hi = std::max(hi, y[i]);
  }
  uint8_t q[256] = {};
  Line best = solve_line(y, n, q);
  if (hi - lo < kFlat) return best;
  const float per_unit = 1.0f / (hi - lo);
  const auto try_line = [&](float min, float inverse) {
    for (int i = 0; i < n; ++i) q[i] = static_cast<uint8_t>(nearest_within((y[i] + min) * inverse, 0, top));
    const Line line = solve_line(y, n, q);
    if (!(line.error < best.error)) return false;
    best = line;
    return true;
  };
  for (int guess = 0; guess < kGuesses; ++guess) {
    const float levels = static_cast<float>(top) + kFirstGuess + kGuessStep * static_cast<float>(guess);
    try_line(-lo, levels * per_unit);
  }
  for (int i = 0; i < kLineRefinements; ++i) {
    if (!try_line(best.min, inverse_or_zero(best.scale))) break;
  }
  return best;
}

// Everything about one super-block of fit_offset, in the unit range.
class OffsetSearch {
 public:
  OffsetSearch(const float* y, int sub, int top, int scale_top) : y_(y), sub_(sub), top_(top), scale_top_(scale_top) {
    for (int j = 0; j < 256 / sub_; ++j) {
      lines_[j] = fit_line(y_ + j * sub_, sub_, top_);
      largest_.scale = std::max(largest_.scale, lines_[j].scale);
      largest_.min = std::max(largest_.min, lines_[j].min);
    }
  }

  Line first() const {
    return {.scale = largest_.scale / static_cast<float>(scale_top_),
            .min = largest_.min / static_cast<float>(scale_top_)};
  }

  float assign_all(float d, float dmin, OffsetBlock& out) const {
    float error = 0;
    for (int j = 0; j < 256 / sub_; ++j) error += assign_sub(d, dmin, j, out);
    return error;
  }

  /// d (scale) and dmin (min) that suit the integers of `block` best.
  Line refit(const OffsetBlock& block) const {
    float pp = 0, pm = 0, mm = 0, yp = 0, ym = 0;
    for (int i = 0; i < 256; ++i) {
      const auto product = static_cast<float>(block.scales[i / sub_] * block.q[i]);
      const auto min = static_cast<float>(block.mins[i / sub_]);
      pp += product * product;
      pm += product * min;
      mm += min * min;
      yp += y_[i] * product;
      ym += y_[i] * min;
    }
    const float determinant = pp * mm - pm * pm;
    Line line;
    if (determinant > 0) {
      line.scale = (yp * mm - ym * pm) / determinant;
      line.min = (yp * pm - ym * pp) / determinant;
    } else if (pp > 0) {
      line.scale = yp / pp;
    }
    line.scale = std::max(line.scale, 0.0f);
    line.min = std::max(line.min, 0.0f);
    return line;
  }

 private:
  // The fitted scale and min lie between integers, and the levels move with them: the neighbours are tried as well.
  float assign_sub(float d, float dmin, int j, OffsetBlock& out) const {
    const int first_scale = nearest_within(lines_[j].scale * inverse_or_zero(d), 0, scale_top_);
    const int first_min = nearest_within(lines_[j].min * inverse_or_zero(dmin), 0, scale_top_);
    float best = kLargest;
    for (int scale = std::max(first_scale - 1, 0); scale <= std::min(first_scale + 1, scale_top_); ++scale) {
      for (int min = std::max(first_min - 1, 0); min <= std::min(first_min + 1, scale_top_); ++min) {
        uint8_t q[256];
        const float error = assign_levels(d * static_cast<float>(scale), dmin * static_cast<float>(min), j, q);
        if (error >= best) continue;
        best = error;
        out.scales[j] = static_cast<uint8_t>(scale);
        out.mins[j] = static_cast<uint8_t>(min);
        std::copy_n(q, sub_, out.q + j * sub_);
      }
    }
    return best;
  }

  float assign_levels(float step, float min, int j, uint8_t* q) const {
    const float inverse = step > 0 ? inverse_or_zero(step) : 0.0f;
    float error = 0;
    for (int i = 0; i < sub_; ++i) {
      const float value = y_[j * sub_ + i] + min;
      const int level = nearest_within(value * inverse, 0, top_);
      const float miss = value - step * static_cast<float>(level);
      error += miss * miss;
      q[i] = static_cast<uint8_t>(level);
    }
    return error;
  }

  const float* y_;
  int sub_, top_, scale_top_;
  Line lines_[16];
  Line largest_;
};

}  // namespace

void fit_offset(const float* x, int sub, int top, int scale_top, OffsetBlock& out) {
  out = {};
  float y[256];
  UnitRange range;
  if (!range.from(x, 256, y)) return;
  const OffsetSearch search(y, sub, top, scale_top);
  Line line = search.first();
  float best = kLargest;
  for (int round = 0; round < kLineRefinements; ++round) {
    OffsetBlock trial{};
    trial.d = range.half(line.scale);
    trial.dmin = range.half(line.min);
    const float d = range.shrink(f16_to_f32(trial.d)), dmin = range.shrink(f16_to_f32(trial.dmin));
    const float error = search.assign_all(d, dmin, trial);
    if (error >= best) break;
    best = error;
    out = trial;
    line = search.refit(out);
  }
}

}  // namespace stoker::quant
