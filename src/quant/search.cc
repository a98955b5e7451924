#include "quant/search.h"

#include <bit>
#include <limits>

namespace stoker::quant {

int LevelSet::closest(float value) const {
  if (!table) return nearest_within(value, lo, hi);
  int i = 0;
  // Halving: the border between two levels is their middle, which belongs to the upper one.
  for (int half = 8; half > 0; half /= 2) {
    if (value * 2 >= static_cast<float>(table[i + half - 1] + table[i + half])) i += half;
  }
  return table[i];
}

bool UnitRange::from(const float* x, int n, float* y) {
  float largest = 0;
  for (int i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[i]));
  // The smallest step of any type is the smallest f16: half of it rounds to zero.
  if (largest < kSmallestHalf / 2) return false;
  exponent = static_cast<int>(std::bit_cast<uint32_t>(largest) >> 23) - 127;
  for (int i = 0; i < n; ++i) y[i] = shrink(x[i]);
  return true;
}

float UnitRange::times_power(float value, int power) {
  const auto bits = static_cast<uint64_t>(1023 + power) << 52;
  const double exact = value * std::bit_cast<double>(bits);
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(exact, -kLargest, kLargest));
}

uint16_t UnitRange::half(float scale) const {
  if (scale == 0) return 0;
  const float value = grow(scale);
  if (std::fabs(value) < kSmallestHalf) return f32_to_f16(value < 0 ? -kSmallestHalf : kSmallestHalf);
  return finite_half(value);
}

namespace {

// The best scale for given levels and how much of sum x^2 it explains.
struct ScaleFit {
  float scale = 0;
  float explained = 0;
};

ScaleFit solve_scale(const float* x, int n, const int8_t* q) {
  float xq = 0, qq = 0;
  for (int i = 0; i < n; ++i) {
    const auto level = static_cast<float>(q[i]);
    xq += x[i] * level;
    qq += level * level;
  }
  if (qq <= 0) return {};
  return {xq / qq, xq * xq / qq};
}

void assign(const float* x, int n, const LevelSet& levels, float inverse, int8_t* q) {
  for (int i = 0; i < n; ++i) q[i] = static_cast<int8_t>(levels.closest(x[i] * inverse));
}

constexpr int kRefinements = 4;

}  // namespace

float fit_scale(const float* x, int n, const LevelSet& levels, int8_t* q) {
  float extreme = 0;
  for (int i = 0; i < n; ++i) extreme = std::fabs(x[i]) > std::fabs(extreme) ? x[i] : extreme;
  std::fill_n(q, n, static_cast<int8_t>(0));
  if (std::fabs(extreme) < kFlat) return 0;
  const float per_unit = 1.0f / extreme;
  ScaleFit best;
  int8_t trial[256];
  const auto keep_if_better = [&] {
    const ScaleFit fit = solve_scale(x, n, trial);
    if (!(fit.explained > best.explained)) return false;
    best = fit;
    std::copy_n(trial, n, q);
    return true;
  };
  for (int i = -levels.tries; i <= levels.tries; ++i) {
    assign(x, n, levels, (static_cast<float>(levels.lo) + levels.step * static_cast<float>(i)) * per_unit, trial);
    keep_if_better();
  }
  for (int i = 0; i < kRefinements; ++i) {
    assign(x, n, levels, inverse_or_zero(best.scale), trial);
    if (!keep_if_better()) break;
  }
  return best.scale;
}

namespace {

// Everything about one super-block of fit_scaled, in the unit range.
class ScaledSearch {
 public:
  ScaledSearch(const float* y, int sub, const LevelSet& levels, int scale_lo, int scale_hi)
      : y_(y), sub_(sub), levels_(levels), scale_lo_(scale_lo), scale_hi_(scale_hi) {
    for (int j = 0; j < 256 / sub_; ++j) {
      int8_t q[256];
      fitted_[j] = fit_scale(y_ + j * sub_, sub_, levels_, q);
      if (std::fabs(fitted_[j]) > std::fabs(largest_)) largest_ = fitted_[j];
    }
  }

  float first_d() const { return largest_ / static_cast<float>(scale_lo_); }

  /// Sub-scales and levels for this d; returns the squared error.
  float assign_all(float d, ScaledBlock& out) const {
    float error = 0;
    for (int j = 0; j < 256 / sub_; ++j) error += assign_sub(d, j, out);
    return error;
  }

  /// The d that suits the integers of `block` best.
  float refit(const ScaledBlock& block) const {
    float yp = 0, pp = 0;
    for (int i = 0; i < 256; ++i) {
      const auto product = static_cast<float>(block.scales[i / sub_] * block.q[i]);
      yp += y_[i] * product;
      pp += product * product;
    }
    return pp > 0 ? yp / pp : 0.0f;
  }

 private:
  // The fitted scale lies between two integers, and the levels move with it: the neighbours are tried as well.
  float assign_sub(float d, int j, ScaledBlock& out) const {
    const int first = nearest_within(fitted_[j] * inverse_or_zero(d), scale_lo_, scale_hi_);
    float best = std::numeric_limits<float>::max();
    for (int scale = std::max(first - 1, scale_lo_); scale <= std::min(first + 1, scale_hi_); ++scale) {
      int8_t q[256];
      const float step = d * static_cast<float>(scale), inverse = step == 0 ? 0.0f : inverse_or_zero(step);
      float error = 0;
      for (int i = 0; i < sub_; ++i) {
        const float value = y_[j * sub_ + i];
        q[i] = static_cast<int8_t>(levels_.closest(value * inverse));
        const float miss = value - step * static_cast<float>(q[i]);
        error += miss * miss;
      }
      if (error >= best) continue;
      best = error;
      out.scales[j] = static_cast<int8_t>(scale);
      std::copy_n(q, sub_, out.q + j * sub_);
    }
    return best;
  }

  const float* y_;
  int sub_;
  const LevelSet& levels_;
  int scale_lo_, scale_hi_;
  float fitted_[16];
  float largest_ = 0;
};

}  // namespace

void fit_scaled(const float* x, int sub, const LevelSet& levels, int scale_lo, int scale_hi, ScaledBlock& out) {
  out = {};
  float y[256];
  UnitRange range;
  if (!range.from(x, 256, y)) return;
  const ScaledSearch search(y, sub, levels, scale_lo, scale_hi);
  float best = std::numeric_limits<float>::max(), d = search.first_d();
  for (int round = 0; round < kRefinements; ++round) {
    ScaledBlock trial{};
    trial.d = range.half(d);
    const float error = search.assign_all(range.shrink(f16_to_f32(trial.d)), trial);
    if (error >= best) break;
    best = error;
    out = trial;
    d = search.refit(out);
  }
}

}  // namespace stoker::quant
