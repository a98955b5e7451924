// From the scores of one tile to its weights, and what the merge of tiles needs. docs/kernels.md has the order.

/// To bf16 and back: nearest, ties to even; magnitudes below 2^-48 become zero. NaN stays NaN.
STOKER_INLINE Ints bf16_bits(Floats v) {
  const Ints bits = to_bits(v);
  const Ints tie = and_ints(shift_right_16(bits), ints(1));
  const Ints rounded = and_ints(add_ints(bits, add_ints(ints(0x7fff), tie)), ints(0xffff0000u));
  const Floats flushed = select_less(magnitude(from_bits(rounded)), floats(0x1p-48f), floats(0.0f), from_bits(rounded));
  const Floats nan = from_bits(and_ints(or_ints(bits, ints(0x00400000u)), ints(0xffff0000u)));
  return to_bits(select_ordered(v, flushed, nan));
}
STOKER_INLINE Floats round_bf16(Floats v) { return from_bits(bf16_bits(v)); }

struct SoftmaxArgs {
  float scale, cap;
  float inverse_cap;
};

/// ALiBi: how far each position of the tile is from the query's, at `at` from the first one, times slope.
struct Distance {
  float slope, at;
};
alignas(64) constexpr float kPositions[kTile] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                                 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                                                 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
                                                 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

/// Turns the 64 scores of a query into weights relative to their maximum; unseen positions weigh 0.
template <bool kBf16>
STOKER_INLINE void softmax_tile(const SoftmaxArgs& args, Distance distance, Range seen, float* scores, float* tile_max,
                                float* tile_sum) {
  constexpr int kVectors = kTile / kWidth, kLaneVectors = 16 / kWidth;
  const bool whole = seen.begin == 0 && seen.end == kTile;
  const Floats lowest = floats(-__builtin_inff());
  Floats s[kVectors], top = lowest;
  STOKER_UNROLL for (int b = 0; b < kVectors; ++b) s[b] = mul(load_floats(scores + kWidth * b), floats(args.scale));
  if (args.cap > 0.0f) {
    STOKER_UNROLL for (int b = 0; b < kVectors; ++b) {
      s[b] = mul(floats(args.cap), tanh(mul(s[b], floats(args.inverse_cap))));
    }
  }
  if (distance.slope != 0.0f) {
    STOKER_UNROLL for (int b = 0; b < kVectors; ++b) {
      const Floats away = magnitude(sub(load_floats(kPositions + kWidth * b), floats(distance.at)));
      s[b] = fma(floats(-distance.slope), away, s[b]);
    }
  }
  if (!whole) {
    STOKER_UNROLL for (int b = 0; b < kVectors; ++b) {
      s[b] = keep_lanes(s[b], seen.begin - kWidth * b, seen.end - kWidth * b, lowest);
    }
  }
  STOKER_UNROLL for (int b = 0; b < kVectors; ++b) top = max(s[b], top);
  *tile_max = max_lane(top);
  const Floats shift = floats(*tile_max);
  Floats lanes[kLaneVectors];
  STOKER_UNROLL for (int b = 0; b < kVectors; ++b) {
    Floats w = exp(sub(s[b], shift));
    if (!whole) w = keep_lanes(w, seen.begin - kWidth * b, seen.end - kWidth * b, floats(0.0f));
    if (kBf16) w = round_bf16(w);
    store_floats(scores + kWidth * b, w);
    lanes[b % kLaneVectors] = b < kLaneVectors ? w : add(lanes[b % kLaneVectors], w);
  }
  *tile_sum = sum_lanes(lanes);
}

/// Merges maxima and sums of n queries and says by what the old and the new values are multiplied. A query starts with
/// the lowest finite maximum and nothing: its first tile then comes through unchanged (exp(0) is 1). A tile that it
/// does not see has that same maximum and the sum 0, which changes nothing.
struct MergeStats {
  float max[64], sum[64];
  float tile_max[64], tile_sum[64];
  float old_factor[64], new_factor[64];
  Range seen[64];
};
constexpr float kLowest = -3.40282347e+38f;

inline void merge_stats(MergeStats& stats, int n) {
  for (int i = 0; i < n; i += kWidth) {
    const Floats old_max = load_floats(stats.max + i), tile_max = load_floats(stats.tile_max + i);
    const Floats top = max(old_max, tile_max);
    const Floats old_factor = exp(sub(old_max, top)), new_factor = exp(sub(tile_max, top));
    store_floats(stats.max + i, top);
    store_floats(stats.sum + i,
                 fma(load_floats(stats.sum + i), old_factor, mul(load_floats(stats.tile_sum + i), new_factor)));
    store_floats(stats.old_factor + i, old_factor);
    store_floats(stats.new_factor + i, new_factor);
  }
}
