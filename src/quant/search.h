// How the encoders of types with fitted scales find them: least squares over the levels, tried from several first
// guesses, and once more over a whole super-block after its sub-scales have become integers.
#pragma once

#include <cstdint>

#include "quant/half.h"

namespace stoker::quant {

/// The levels that a weight may take: the integers lo ... hi, or the 16 of a table, ascending.
struct LevelSet {
  int lo, hi;
  const int8_t* table = nullptr;
  /// Of the first guesses: the weight of largest magnitude becomes lo + step * (-tries ... tries).
  float step = 0.1f;
  int tries = 9;

  int closest(float value) const;
};

/// x ~ scale * q for n weights. Returns the scale; q are the levels.
float fit_scale(const float* x, int n, const LevelSet& levels, int8_t* q);

/// A super-block of 256: x ~ d * scales[j] * q.
struct ScaledBlock {
  uint16_t d;  // f16
  int8_t scales[16];
  int8_t q[256];
};
/// Sub-blocks of `sub` weights with scales from scale_lo (the end of larger magnitude) to scale_hi. x is finite.
void fit_scaled(const float* x, int sub, const LevelSet& levels, int scale_lo, int scale_hi, ScaledBlock& out);

/// A super-block of 256: x ~ d * scales[j] * q - dmin * mins[j], q from 0 to top.
struct OffsetBlock {
  uint16_t d, dmin;  // f16
  uint8_t scales[16], mins[16];
  uint8_t q[256];
};
/// Sub-blocks of `sub` weights with scales and mins from 0 to scale_top. x is finite.
void fit_offset(const float* x, int sub, int top, int scale_top, OffsetBlock& out);

/// Sub-blocks whose extremes lie closer together than this, in the unit range, are flat: no scale of a file reaches
/// there.
inline constexpr float kFlat = 0x1p-100f;

/// Brings values into a range where squares neither overflow nor vanish: y = x * 2^-exponent, |y| below 2.
struct UnitRange {
  int exponent = 0;
  /// False when all are zero or too small for any f16 scale.
  bool from(const float* x, int n, float* y);
  float shrink(float value) const { return times_power(value, -exponent); }
  /// Saturates instead of overflowing.
  float grow(float value) const { return times_power(value, exponent); }
  /// A scale of y as the f16 of x that is stored: finite, and never zero where `scale` is not.
  uint16_t half(float scale) const;

 private:
  static float times_power(float value, int power);
};

}  // namespace stoker::quant
